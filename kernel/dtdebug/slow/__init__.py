"""`dtdebug slow TRACES`: from the traces of several ranks to who computes, communicates, idles, and who is late."""
