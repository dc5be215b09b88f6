"""Detects the environment variables that the program reads optionally."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside.record_writer import PartNotes, is_foreign

_BETWEEN = ("<frozen os>", "<frozen _collections_abc>", os.__file__)
"""Files of the frames of `os.getenv`, `.get` and `in`."""

LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""Variables by which a program detects a launcher."""
_TAKEN = (*LAUNCHED, "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")


def without_launcher(notes: PartNotes) -> None:
    """Remove the launcher's variables from the only rank, if wanted."""
    if notes.wants("no-launcher") and os.environ.get("WORLD_SIZE") == "1":
        for name in _TAKEN:
            os.environ.pop(name, None)
        notes.note("set", "no-launcher")


def accelerate(module: ModuleType, notes: PartNotes) -> None:
    """Note that Accelerate is used, which continues as one process if no launcher has started it."""
    notes.note("saw", "launcher.asked", module.__name__)


def begin(notes: PartNotes) -> None:
    """Watch `os.environ`, except `os.environ[NAME]`, which would fail without the variable."""
    kind: Any = type(os.environ)
    original = kind.__getitem__

    @functools.wraps(original)
    def get(self: Any, key: Any) -> Any:
        value = original(self, key)
        frame, between = sys._getframe(1), False  # noqa: SLF001
        while frame.f_code.co_filename in _BETWEEN and frame.f_back is not None:
            frame, between = frame.f_back, True
        if between and not is_foreign(frame.f_code.co_filename):
            notes.note("saw", f"variable.{key}")
            if key in LAUNCHED:
                notes.note("saw", "launcher.asked", key)
        return value

    kind.__getitem__ = get
