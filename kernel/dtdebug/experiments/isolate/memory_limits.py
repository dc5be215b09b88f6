"""Detects that a run nearly exhausts memory or disk: then the run and the search are ended."""

from __future__ import annotations

import shutil
from pathlib import Path

MEMORY, DISK = 0.03, 256 << 20
"""Minimum free share of the host's memory, and minimum free bytes of the disk of the runs."""


def used_up(place: Path) -> str:
    """Return the nearly exhausted resource in words, or ""."""
    import psutil

    memory = psutil.virtual_memory()
    if memory.available < MEMORY * memory.total:
        return f"the memory of this host: {memory.available >> 20} of {memory.total >> 20} MiB are left"
    free = shutil.disk_usage(place).free
    return f"the disk of {place}: {free >> 20} MiB are left" if free < DISK else ""
