"""`dtdebug slow TRACES`: shows from several ranks' traces who computes, communicates or idles, and who is late."""
