"""Whether a run has used up what the user's other programs need: then it is ended, and so is the search."""

from __future__ import annotations

import shutil
from pathlib import Path

MEMORY, DISK = 0.03, 256 << 20
"""Share of the host's memory, and bytes of the disk of the runs, that must stay free."""


def used_up(place: Path) -> str:
    """What is nearly used up, in words; empty if nothing is."""
    import psutil

    memory = psutil.virtual_memory()
    if memory.available < MEMORY * memory.total:
        return f"the memory of this host: {memory.available >> 20} of {memory.total >> 20} MiB are left"
    free = shutil.disk_usage(place).free
    return f"the disk of {place}: {free >> 20} MiB are left" if free < DISK else ""
