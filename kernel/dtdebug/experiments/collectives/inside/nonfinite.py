"""Makes the search for the first value that is not finite one of the modules that ranks can start."""

from dtdebug.experiments.nonfinite.inside.install import begin

__all__ = ["begin"]
