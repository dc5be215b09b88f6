"""Which way the kernel takes: its own address on packets to a peer, and packets that it drops for the way they came.

Linux drops what comes in at a card with `rp_filter` 1 if its own way back to the sender leads by another card; a
question by ARP is then not answered either, and not counted.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import msgspec

MOST = 64
UNANSWERED = ("timeout", "unreachable")
"""Results of a connection that nobody answered, or whose question for the card of the address nobody answered."""
_DISCARD = 9
_STRICT = 1
_CONF = Path("/proc/sys/net/ipv4/conf")


class Back(msgspec.Struct, frozen=True, kw_only=True):
    """How a host would answer peers that got no answer from it."""

    dropped: int = 0
    """Packets that its kernel dropped since the meeting because of the way they came."""
    ways: dict[str, str] = {}
    """Address of a peer -> own address on packets to it."""


def source(address: str) -> str:
    """The address that the kernel gives to packets for another one; empty where it knows no way. Nothing is sent."""
    try:
        ipaddress.ip_address(address)  # a name would be asked for
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as plug:
            plug.connect((address, _DISCARD))
            return str(plug.getsockname()[0]).partition("%")[0]
    except (OSError, ValueError):
        return ""


def back(wanted: Iterable[str], before: int) -> Back:
    """The ways back to some addresses, and what was dropped since the count was `before`."""
    return Back(dropped=max(0, dropped() - before), ways={a: source(a) for a in list(wanted)[:MOST]})


def is_strict(card: str) -> bool:
    """A card takes only what comes by the way that the answer would take: the larger of two settings counts."""
    values = [_number(_CONF / name / "rp_filter") for name in ("all", card.partition(":")[0])]
    return max(values) == _STRICT


def dropped() -> int:
    """Packets that were dropped for the way they came, by the count of this network."""
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
