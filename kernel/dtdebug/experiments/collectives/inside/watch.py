"""Makes the watch of a training one of the modules that ranks can start."""

from dtdebug.experiments.invariants.inside.install import begin

__all__ = ["begin"]
