"""Predicts the interface that gloo and NCCL will choose on this host, by the rules of their sources and manuals.

gloo as torch uses it (ProcessGroupGloo, gloo/transport/tcp/device.cc): GLOO_SOCKET_IFNAME, an exact name; else the
first address of the host's own name that can be bound; else the loopback. NCCL (its manual, NCCL_SOCKET_IFNAME, and
src/misc/socket.cc): the variable, prefixes with `^` and `=`; else ib*, else any but docker*, lo, virbr*, else docker*,
else lo, else virbr*.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dtdebug.doctor.types import Choice, Interface, Name

_LOOPBACK = "127.0.0.1"


def gloo(interfaces: Sequence[Interface], own: Name, variables: Mapping[str, str]) -> Choice:
    """Return the address that gloo will give to its peers."""
    wanted = variables.get("GLOO_SOCKET_IFNAME", "")
    if len(wanted) > 1:
        name = wanted.split(",")[0]
        card = next((i for i in interfaces if i.name == name), None)
        if card is None or not card.addresses:
            why = "has no address" if card else "is not an interface of this host"
            return Choice(interface=name, why="GLOO_SOCKET_IFNAME", error=f"{name} {why}")
        return Choice(address=bare(card.addresses[0]), interface=name, why="GLOO_SOCKET_IFNAME", given=wanted)
    for address in own.addresses:
        if _can_bind(address):
            return Choice(address=address, interface=_card(interfaces, address), why="own name")
    return Choice(address=_LOOPBACK, interface="lo", why="fallback")


def nccl(interfaces: Sequence[Interface], variables: Mapping[str, str]) -> Choice:
    """Return the first interface that NCCL will use for its sockets."""
    family = {"AF_INET": ".", "AF_INET6": ":"}.get(variables.get("NCCL_SOCKET_FAMILY", ""), "")
    cards = [
        (i, a) for i in interfaces for a in i.addresses if i.up and family in a and not bare(a).startswith("fe80:")
    ]
    wanted = variables.get("NCCL_SOCKET_IFNAME", "")
    if len(wanted) > 1:
        row = next(((i, a) for i, a in cards if matches(i.name, wanted)), None)
        if row is None:
            return Choice(
                why="NCCL_SOCKET_IFNAME", error=f"no interface that is up and has an address matches {wanted}"
            )
        return Choice(address=bare(row[1]), interface=row[0].name, why="NCCL_SOCKET_IFNAME", given=wanted)
    for rule in ("ib", "^docker,lo,virbr", "docker", "lo", "virbr"):
        row = next(((i, a) for i, a in cards if matches(i.name, rule)), None)
        if row is not None:
            return Choice(address=bare(row[1]), interface=row[0].name, why="default")
    return Choice(why="default", error="no interface is up and has an address")


def matches(name: str, wanted: str) -> bool:
    """True if a value of NCCL_SOCKET_IFNAME selects the interface."""
    without = wanted.startswith("^")
    text = wanted.removeprefix("^")
    exact = text.startswith("=")
    words = [word for word in text.removeprefix("=").split(",") if word]
    return any(name == word if exact else name.startswith(word) for word in words) != without


def bare(address: str) -> str:
    """Strip the prefix length from an address."""
    return address.partition("/")[0]


def _card(interfaces: Sequence[Interface], address: str) -> str:
    found = next((i.name for i in interfaces for a in i.addresses if bare(a) == address), "")
    return found or ("lo" if address.startswith("127.") else "")


def _can_bind(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError as error:
            return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)
        return True
    return False
