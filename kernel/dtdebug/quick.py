"""What makes a short command quick: half of its time went into what it doesn't need."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 100_000
"""After so many new objects garbage is looked for: an answer makes some 50,000, of which hardly any is garbage."""


@contextmanager
def quick() -> Iterator[None]:
    """Around the whole of a command, in a process of our own."""
    gc.set_threshold(_NEW_OBJECTS)
    from dtdebug_taxonomy.compiled import compiled_before

    with compiled_before():
        yield
    gc.freeze()  # what ends with the process need not be looked through
