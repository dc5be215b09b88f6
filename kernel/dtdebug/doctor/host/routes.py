"""Reads the kernel's routes: the source address of packets to a peer, and packets dropped by reverse path filtering.

With `rp_filter` 1, Linux drops packets that arrive at one card if the route back to the sender leads through another;
an ARP request is then not answered either, and not counted.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from dtdebug.doctor.types import ReturnRoutes

MOST = 64
UNANSWERED = ("timeout", "unreachable")
"""Results of a connection without an answer, or without an answer to its ARP request."""
_DISCARD = 9
_STRICT = 1
_CONF = Path("/proc/sys/net/ipv4/conf")


def source(address: str) -> str:
    """Return the source address of packets to another address, or "" without a route; sends nothing."""
    try:
        ipaddress.ip_address(address)  # a name would be looked up
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as plug:
            plug.connect((address, _DISCARD))
            return str(plug.getsockname()[0]).partition("%")[0]
    except (OSError, ValueError):
        return ""


def back(wanted: Iterable[str], before: int) -> ReturnRoutes:
    """Return the routes back to some addresses, and the packets dropped since the count was `before`."""
    return ReturnRoutes(dropped=max(0, count_dropped() - before), ways={a: source(a) for a in list(wanted)[:MOST]})


def is_strict(card: str) -> bool:
    """True if a card uses strict reverse path filtering: the larger of the global and its own setting applies."""
    values = [_number(_CONF / name / "rp_filter") for name in ("all", card.partition(":")[0])]
    return max(values) == _STRICT


def count_dropped() -> int:
    """Return this network namespace's count of packets dropped by reverse path filtering."""
    try:
        lines = Path("/proc/net/netstat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return 0
    for names, values in pairwise(lines):
        row = dict(zip(names.split(), values.split(), strict=False))
        if row.get("IPReversePathFilter", "").isdecimal():
            return int(row["IPReversePathFilter"])
    return 0


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
