"""Makes the comparison with one process one of the modules that ranks can start."""

from dtdebug.experiments.parity.inside.install import begin

__all__ = ["begin"]
