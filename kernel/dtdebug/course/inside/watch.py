"""The watch over a training, as one thing that ranks may be told to do."""

from dtdebug.watch.inside.start import begin

__all__ = ["begin"]
