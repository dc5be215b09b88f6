"""Labs: folders with `before.py` and `after.py` that really run; their difference is the fix that is shown."""

from __future__ import annotations

import difflib
from functools import lru_cache
from pathlib import Path

from dtdebug_taxonomy.model import Cause

LABS = Path(__file__).parent / "labs"


def cause_diff(cause: Cause) -> str:
    """The fix of a cause as a unified diff: of its lab if it has one."""
    return lab_diff(cause.lab) if cause.lab else cause.diff


@lru_cache(maxsize=64)
def lab_diff(name: str, path: str = "train.py") -> str:
    """The unified diff from a lab's `before.py` to its `after.py`, for the file `path`."""
    before, after = (
        (LABS / name / f).read_text(encoding="utf-8").splitlines(keepends=True) for f in ("before.py", "after.py")
    )
    return "".join(difflib.unified_diff(before, after, f"a/{path}", f"b/{path}"))
