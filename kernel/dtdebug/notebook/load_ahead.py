"""Loads what a diagnosis needs while the kernel is idle: it takes a second, which the first failed cell would wait.

It happens in the thread that runs the cells, in steps: a cell that is run meanwhile waits for one of them at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import import_module

from dtdebug.notebook import failed_cell

_PAUSE, _BETWEEN = 2.0, 0.02
"""Seconds after a cell until the first step, and between two: cells that are run together are not held up."""
_MODULES = (
    "dtdebug.account.capture",
    "dtdebug_taxonomy.source.kinds",
    "dtdebug.check.files",
    "dtdebug_taxonomy.inference.message_edits",
    "dtdebug_taxonomy.diagnosis.headline",
    "dtdebug_taxonomy.explanations.source_check",
    "dtdebug_taxonomy.explanations.table",
    "dtdebug.privacy.boundary",
    "dtdebug.account.printed",
    "dtdebug.notebook.postmortem",
    "dtdebug.presentation.diagnosis_card",
)


class LoadAhead:
    """Steps that are left, and the timer of the next one while no cell runs."""

    def __init__(self) -> None:
        self._steps: Iterator[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done = False

    def cell_begins(self) -> None:
        """Wait until the kernel is idle again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def cell_ends(self) -> None:
        """Go on after a pause, in a notebook of distributed training; in a terminal nothing runs between cells."""
        if self._done or not failed_cell.has_framework():
            return
        try:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE, self._step)
        except RuntimeError:
            self._done = True

    def _step(self) -> None:
        self._steps = self._steps or _steps()
        try:
            next(self._steps)
            self._timer = asyncio.get_running_loop().call_later(_BETWEEN, self._step)
        except BaseException:  # the end; an interrupt would end the loop, and the kernel with it
            self._done, self._timer = True, None


def _steps() -> Iterator[object]:
    for name in _MODULES:
        yield import_module(name)
    from dtdebug.privacy.boundary import diagnose
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot

    yield load()
    ordinary = ExceptionInfo(type="KeyError", message="'lr'")
    yield diagnose(load(), Snapshot(exception=ordinary, cell="cfg['lr']"), unasked=True)
