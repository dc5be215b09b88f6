"""Which variables of the environment the program itself asks for, without needing them to be there."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from dtdebug.isolate.inside.notes import Notes, is_foreign

_BETWEEN = ("<frozen os>", "<frozen _collections_abc>", os.__file__)
"""Frames of `os.getenv`, of `.get` and of `in`."""


def begin(notes: Notes) -> None:
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
        return value

    kind.__getitem__ = get
