"""Formats sizes in words."""

from __future__ import annotations


def spell_bytes(size: float) -> str:
    """Return a size in binary units: `11.9 GiB`, `64 KiB`, `12 bytes`."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{f'{size / unit:.1f}'.removesuffix('.0')} {name}"
    return f"{size:.0f} bytes"
