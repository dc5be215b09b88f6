"""Speeds up short commands, which would spend half of their time on unneeded work."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 100_000
"""Number of new objects that triggers garbage collection; an answer makes some 50,000, hardly any of them garbage."""


@contextmanager
def quick() -> Iterator[None]:
    """Wrap a whole command, in a process of our own."""
    gc.set_threshold(_NEW_OBJECTS)
    from dtdebug_taxonomy.knowledge.regex_cache import compiled_before

    with compiled_before():
        yield
    gc.freeze()  # garbage that ends with the process need not be collected
