"""Which variables of the environment the program itself asks for, without needing them to be there."""

from __future__ import annotations

import functools
import os
import sys
from types import ModuleType
from typing import Any

from dtdebug.isolate.inside.notes import PartNotes, is_foreign

_BETWEEN = ("<frozen os>", "<frozen _collections_abc>", os.__file__)
"""Frames of `os.getenv`, of `.get` and of `in`."""

LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
"""By these a program knows that a launcher has started it."""
_TAKEN = (*LAUNCHED, "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT")


def without_launcher(notes: PartNotes) -> None:
    """Takes from the only rank what says that a launcher has started it, where that is wanted."""
    if notes.wants("no-launcher") and os.environ.get("WORLD_SIZE") == "1":
        for name in _TAKEN:
            os.environ.pop(name, None)
        notes.note("set", "no-launcher")


def accelerate(module: ModuleType, notes: PartNotes) -> None:
    """Accelerate goes on as one process where no launcher has started it."""
    notes.note("saw", "launcher.asked", module.__name__)


def begin(notes: PartNotes) -> None:
    """Watches `os.environ`; `os.environ[NAME]` is left out, which fails where the variable is taken away."""
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
