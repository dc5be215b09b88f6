"""Saves and restores the random states of a process."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def states() -> dict[str, Any]:
    """Return the states of the generators of Python, NumPy, and torch on all devices that are in use."""
    torch: Any = sys.modules["torch"]
    found: dict[str, Any] = {"python": random.getstate(), "cpu": torch.get_rng_state()}
    if "numpy" in sys.modules and hasattr(sys.modules["numpy"], "random"):
        found["numpy"] = sys.modules["numpy"].random.get_state()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        found["cuda"] = torch.cuda.get_rng_state_all()
    return found


def restore(saved: dict[str, Any]) -> None:
    """Restore these states."""
    torch: Any = sys.modules["torch"]
    random.setstate(saved["python"])
    torch.set_rng_state(saved["cpu"])
    if "numpy" in saved:
        sys.modules["numpy"].random.set_state(saved["numpy"])
    if "cuda" in saved:
        torch.cuda.set_rng_state_all(saved["cuda"])


@contextmanager
def unchanged() -> Iterator[None]:
    """Leave the random states as they were."""
    saved = states()
    try:
        yield
    finally:
        restore(saved)
