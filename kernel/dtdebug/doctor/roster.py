"""What hosts that have met say to each other: who tries whom, at which addresses, and what each then reports."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug.doctor import names, pairs
from dtdebug.doctor.facts import Came, HostReport, Try

PROBING, SAYING = 16.0, 5.0
"""Seconds that probes, and a message, may take."""
FILES_ASKED = 8
_ADDRESSES = 6
_MANY, _ALL = 64, 256
"""Hosts from which on other addresses are tried only where all of the first fail; up to which all pairs are tried."""


class Peer(msgspec.Struct, kw_only=True):
    """A host as the others are told of it."""

    ports: list[tuple[str, int]] = []
    main: list[str] = []
    """The addresses that gloo and NCCL will take, and that by which it came."""


class Measured(msgspec.Struct, kw_only=True):
    """What a host says it has measured."""

    tries: list[Try] = []
    lines: dict[str, list[str]] = {}


def peers(index: int, count: int) -> list[int]:
    """Whom a host tries: all; of very many those 1, 2, 4, ... places away on both sides, so that each tries each."""
    if count <= _ALL:
        return [i for i in range(count) if i != index]
    steps = [1 << k for k in range((count - 1).bit_length())]
    return sorted({(index + sign * step) % count for step in steps for sign in (1, -1)} - {index})


async def try_peers(partners: Sequence[tuple[int, Peer]], key: str) -> list[Try]:
    """First the addresses that the libraries and the meeting use; others of a peer only where these fail."""
    wanted = [(i, a, p, a in peer.main) for i, peer in partners for a, p in peer.ports]
    found = await pairs.probe([(i, a, p) for i, a, p, first in wanted if first], key)
    good = {t.node for t in found if t.result == "ok" and t.large}
    bad = {t.node for t in found if t.result != "ok" or not t.large}
    again = bad - good if len(partners) > _MANY else {i for i, _ in partners} - (good - bad)
    return found + await pairs.probe([(i, a, p) for i, a, p, first in wanted if not first and i in again], key)


def peer_of(came: Came) -> Peer:
    """A host that came, as the others are told of it."""
    look = came.look
    return Peer(ports=list(look.ports)[:_ADDRESSES], main=[look.gloo.address, look.nccl.address, came.address])


def answering_at(look: HostReport) -> list[str]:
    """Where this host answers probes: where gloo and NCCL will, and at its other addresses."""
    found = [look.gloo.address, look.nccl.address, *names.outward(look.interfaces)]
    return [a for a in dict.fromkeys(found) if a and not names.is_loopback(a)][:_ADDRESSES]
