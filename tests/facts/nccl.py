"""nccl.json: the variables that NCCL reads, from the strings of its library in the wheels on PyPI."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from sources import download, lifetimes, member

VERSIONS = (
    *("2.18.3", "2.19.3", "2.20.5", "2.21.5", "2.22.3", "2.23.4", "2.24.3", "2.25.1"),
    *("2.26.5", "2.27.7", "2.28.9", "2.29.7", "2.30.7", "2.31.2", "2.32.3"),
)
_NAME = re.compile(rb"NCCL_[A-Z0-9_]*[A-Z0-9](?![A-Z0-9_])")
"""Begins with what it looks for: with a look-behind before it the search takes minutes more."""


def nccl(folder: Path) -> dict[str, object]:
    """The table: what the code can compare with an environment variable, and constants that only look like one."""
    seen: dict[str, set[str]] = {}
    whole: set[str] = set()
    debug: set[str] = set()
    for version in VERSIONS:
        library = member(download("nvidia-nccl-cu12", version, folder), "/lib/libnccl.so.2")
        seen[version] = set()
        for section, start, end in sections(library):
            if section.startswith(".rodata"):
                for found in _NAME.finditer(library, start, end):
                    around = library[found.start() - 1 : found.start()], library[found.end() : found.end() + 1]
                    if not re.match(rb"[A-Z0-9_]", around[0]):
                        seen[version].add(found[0].decode())
                    if around == (b"\0", b"\0"):
                        whole.add(found[0].decode())
            elif section.startswith(".debug"):
                debug |= {found[0].decode() for found in _NAME.finditer(library, start, end)}
    # A name that is a string of its own in one version is a variable. In others the linker may have laid it into the
    # end of a longer string, or the compiler into the code: there a mention in a message has to do.
    known = lifetimes({version: names & whole for version, names in seen.items()})
    return {
        "source": f"nvidia-nccl-cu12 {VERSIONS[0]} to {VERSIONS[-1]}",
        "versions": list(VERSIONS),
        "variables": known,
        "constants": sorted((debug | set().union(*seen.values())) - set(known)),
    }


def sections(elf: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each section of a 64-bit ELF file.

    A name in read-only data is one that the code uses; enumerators stand in debug information only.
    """
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    for name, kind, _, _, offset, length in headers:
        at = headers[names][4] + name
        if kind != 8:  # SHT_NOBITS takes no room in the file
            yield elf[at : elf.index(b"\0", at)].decode(), offset, offset + length
