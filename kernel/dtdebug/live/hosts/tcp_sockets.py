"""TCP sockets of a process's network namespace, from /proc."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

_LIMIT = 8 << 20
"""Maximum size in bytes of a table of sockets."""
_FILES = 4096
_STATES = {"01": "connected", "02": "connecting", "0A": "listening"}


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP socket."""

    state: str
    """connected, connecting, listening, or "" for any other state."""
    address: str
    port: int
    far: str
    far_port: int
    inode: int


def sockets(pid: int) -> list[Socket]:
    """Return all TCP sockets of the process's network namespace, including those of other processes.

    Raises:
        OSError: they can't be read.

    """
    found: list[Socket] = []
    with Path(f"/proc/{pid}/net/tcp").open(encoding="ascii", errors="replace") as table:
        found += _rows(table.read(_LIMIT))
    with suppress(OSError), Path(f"/proc/{pid}/net/tcp6").open(encoding="ascii", errors="replace") as table:
        found += _rows(table.read(_LIMIT))
    return found


def socket_inodes(pid: int) -> set[int]:
    """Return the inodes of a process's open sockets; empty if unreadable."""
    found = set()
    with suppress(OSError):
        for entry in list(os.scandir(f"/proc/{pid}/fd"))[:_FILES]:
            with suppress(OSError):
                name = os.readlink(entry.path)  # noqa: PTH115 - no path: `socket:[4711]`
                if name.startswith("socket:["):
                    found.add(int(name[8:-1]))
    return found


def _rows(text: str) -> Iterator[Socket]:
    for line in text.splitlines()[1:]:
        words = line.split()
        with suppress(ValueError, IndexError):
            (address, port), (far, far_port) = _address(words[1]), _address(words[2])
            state = _STATES.get(words[3], "")
            yield Socket(state=state, address=address, port=port, far=far, far_port=far_port, inode=int(words[9]))


def _address(text: str) -> tuple[str, int]:
    """Return (address, port) from the kernel's hexadecimal form: words of four bytes in this machine's byte order."""
    number, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(number[i : i + 8])[::-1] for i in range(0, len(number), 8))
    address = ipaddress.ip_address(raw)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address), int(port, 16)
