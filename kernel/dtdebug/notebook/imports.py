"""Tells the moment at which a process imports what makes ranks, so that nothing is watched in all other notebooks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

_MAKES_RANKS = frozenset(("torch.distributed", "horovod", "mpi4py", "jax", "tensorflow"))


class Watch:
    """Calls a function once, when the first of the modules is imported or at once if one is; finds no module itself."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def begin(self) -> None:
        """Begins to watch."""
        if _MAKES_RANKS & sys.modules.keys():
            self._act()
        else:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Stops watching."""
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Part of the protocol of `sys.meta_path`; any error stays here, for it is the user's import."""
        if name in _MAKES_RANKS:
            self.end()
            with suppress(Exception):
                self._act()
