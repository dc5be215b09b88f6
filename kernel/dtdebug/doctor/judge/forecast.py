"""Whether gloo and NCCL will connect: simulated over the addresses that were measured.

Of each pair gloo's larger address calls the smaller one (`isInitiator` of gloo/transport/tcp/device.cc).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from dtdebug.doctor.facts import Came, Choice, Try
from dtdebug.doctor.names import is_loopback


class Pair(NamedTuple):
    """A pair whose connection will fail."""

    caller: int
    called: int
    address: str
    why: str
    """itself, family, refused, timeout, unreachable, other, error, large, none (no address)."""


class Forecast(NamedTuple):
    """What is to be expected of a library."""

    verdict: str
    """connects, fails, or unknown where pairs were not measured."""
    failing: tuple[Pair, ...]
    pairs: int


def gloo(came: Sequence[Came]) -> Forecast:
    """Each pair once, from the larger address to the smaller."""
    failing, unknown, count = [], 0, 0
    for i, j in combinations(range(len(came)), 2):
        count += 1
        a, b = came[i].look, came[j].look
        if a.gloo.error or b.gloo.error or not (a.gloo.address and b.gloo.address):
            failing.append(Pair(i, j, "", "none"))
            continue
        if a.boot and a.boot == b.boot:
            continue
        ours, theirs = _bytes(a.gloo), _bytes(b.gloo)
        if len(ours) != len(theirs):
            failing.append(Pair(i, j, b.gloo.address, "family"))
            continue
        caller, called = (i, j) if ours > theirs else (j, i)
        address = came[called].look.gloo.address
        if is_loopback(address) or ours == theirs:
            failing.append(Pair(caller, called, address, "itself"))
            continue
        why = _why(result(came, caller, called, address))
        unknown += why == "unknown"
        if why not in ("", "unknown"):
            failing.append(Pair(caller, called, address, why))
    return Forecast("fails" if failing else "unknown" if unknown else "connects", tuple(failing), count)


def nccl(came: Sequence[Came]) -> Forecast:
    """Each pair in both directions."""
    failing, unknown, count = [], 0, 0
    for i, c in enumerate(came):
        for j, other in enumerate(came):
            if i == j or (c.look.boot and c.look.boot == other.look.boot):
                continue
            count += 1
            address = other.look.nccl.address
            if other.look.nccl.error or not address:
                failing.append(Pair(i, j, "", "none"))
            elif is_loopback(address):
                failing.append(Pair(i, j, address, "itself"))
            else:
                why = _why(result(came, i, j, address))
                unknown += why == "unknown"
                if why not in ("", "unknown"):
                    failing.append(Pair(i, j, address, why))
    return Forecast("fails" if failing else "unknown" if unknown else "connects", tuple(failing), count)


def result(came: Sequence[Came], caller: int, called: int, address: str) -> Try | None:
    """What one host measured of an address of another."""
    return next((t for t in came[caller].tries if t.node == called and t.address == address), None)


def _why(tried: Try | None) -> str:
    if tried is None:
        return "unknown"
    if tried.result != "ok":
        return tried.result
    return "large" if tried.large is False else ""


def _bytes(choice: Choice) -> bytes:
    return ipaddress.ip_address(choice.address).packed
