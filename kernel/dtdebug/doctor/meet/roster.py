"""Messages between hosts after they have met: which peers to try, at which addresses, and the results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dtdebug.doctor.host import interfaces
from dtdebug.doctor.meet import pair_probes
from dtdebug.doctor.types import Arrival, HostReport, Try

PROBING, SAYING = 16.0, 5.0
"""Seconds to wait for probes, and for a message."""
FILES_ASKED = 8
_ADDRESSES = 6
_MANY, _ALL = 64, 256
"""Hosts above which other addresses are tried only if all main ones fail; up to which all pairs are tried."""


class Peer(msgspec.Struct, kw_only=True):
    """Host as described to its peers."""

    ports: list[tuple[str, int]] = []
    main: list[str] = []
    """Addresses that gloo and NCCL will use, and the one from which the host connected."""


class PeerResults(msgspec.Struct, kw_only=True):
    """Measurements that a host reports."""

    tries: list[Try] = []
    lines: dict[str, list[str]] = {}


def peers(index: int, count: int) -> list[int]:
    """Return the peers that a host tries: all, or 1, 2, 4, ... places away on both sides if there are very many."""
    if count <= _ALL:
        return [i for i in range(count) if i != index]
    steps = [1 << k for k in range((count - 1).bit_length())]
    return sorted({(index + sign * step) % count for step in steps for sign in (1, -1)} - {index})


async def try_peers(partners: Sequence[tuple[int, Peer]], key: str) -> list[Try]:
    """Probe the addresses that the libraries and the meeting use; a peer's other addresses only if these fail."""
    wanted = [(i, a, p, a in peer.main) for i, peer in partners for a, p in peer.ports]
    found = await pair_probes.probe([(i, a, p) for i, a, p, first in wanted if first], key)
    good = {t.node for t in found if t.result == "ok" and t.large}
    bad = {t.node for t in found if t.result != "ok" or not t.large}
    again = bad - good if len(partners) > _MANY else {i for i, _ in partners} - (good - bad)
    return found + await pair_probes.probe([(i, a, p) for i, a, p, first in wanted if not first and i in again], key)


def peer_of(came: Arrival) -> Peer:
    """Return the description of an arrived host for its peers."""
    look = came.look
    return Peer(ports=list(look.ports)[:_ADDRESSES], main=[look.gloo.address, look.nccl.address, came.address])


def answering_at(look: HostReport) -> list[str]:
    """Return the addresses where this host answers probes: gloo's and NCCL's first, then its others."""
    found = [look.gloo.address, look.nccl.address, *interfaces.outward(look.interfaces)]
    return [a for a in dict.fromkeys(found) if a and not interfaces.is_loopback(a)][:_ADDRESSES]
