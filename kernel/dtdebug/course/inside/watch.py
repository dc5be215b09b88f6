"""Makes the watch of a training one of the modules that ranks can start."""

from dtdebug.watch.inside.start import begin

__all__ = ["begin"]
