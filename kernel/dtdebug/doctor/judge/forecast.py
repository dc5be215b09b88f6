"""Predicts whether gloo and NCCL will connect, by simulating them on the measured addresses.

In each pair, gloo's larger address calls the smaller one (`isInitiator` of gloo/transport/tcp/device.cc).
"""

from __future__ import annotations

import ipaddress
from itertools import combinations
from typing import NamedTuple

from dtdebug.doctor.host.interfaces import is_loopback
from dtdebug.doctor.judge.matrix import Hosts
from dtdebug.doctor.types import Choice, Try


class Pair(NamedTuple):
    """Pair whose connection will fail."""

    caller: int
    called: int
    address: str
    why: str
    """itself, family, refused, timeout, unreachable, other, error, large, or none (without an address)."""


class Forecast(NamedTuple):
    """Expected result for a library."""

    verdict: str
    """`connects`, `fails`, or `unknown` if pairs were not measured."""
    failing: tuple[Pair, ...]
    pairs: int


def gloo(came: Hosts) -> Forecast:
    """Predict gloo: each pair once, the larger address calling the smaller one."""
    failing, unknown, count = [], 0, 0
    packed = [_bytes(c.look.gloo) for c in came]
    for i, j in combinations(range(len(came)), 2):
        count += 1
        a, b = came[i].look, came[j].look
        if a.gloo.error or b.gloo.error or not (packed[i] and packed[j]):
            failing.append(Pair(i, j, "", "none"))
            continue
        if came.share(i, j):
            continue
        ours, theirs = packed[i], packed[j]
        if len(ours) != len(theirs):
            failing.append(Pair(i, j, b.gloo.address, "family"))
            continue
        caller, called = (i, j) if ours > theirs else (j, i)
        address = came[called].look.gloo.address
        if is_loopback(address) or ours == theirs:
            failing.append(Pair(caller, called, address, "itself"))
            continue
        why = _why(came.tries_at(called, address).get(caller))
        unknown += why == "unknown"
        if why not in ("", "unknown"):
            failing.append(Pair(caller, called, address, why))
    return Forecast("fails" if failing else "unknown" if unknown else "connects", tuple(failing), count)


def nccl(came: Hosts) -> Forecast:
    """Predict NCCL: each pair in both directions."""
    failing, unknown, count = [], 0, 0
    for i in range(len(came)):
        for j, other in enumerate(came):
            if i == j or came.share(i, j):
                continue
            count += 1
            address = other.look.nccl.address
            if other.look.nccl.error or not address:
                failing.append(Pair(i, j, "", "none"))
            elif is_loopback(address):
                failing.append(Pair(i, j, address, "itself"))
            else:
                why = _why(came.tries_at(j, address).get(i))
                unknown += why == "unknown"
                if why not in ("", "unknown"):
                    failing.append(Pair(i, j, address, why))
    return Forecast("fails" if failing else "unknown" if unknown else "connects", tuple(failing), count)


def _why(tried: Try | None) -> str:
    if tried is None:
        return "unknown"
    if tried.result != "ok":
        return tried.result
    return "large" if tried.large is False else ""


def _bytes(choice: Choice) -> bytes:
    """Return the packed address for comparison, or b"" if there is none."""
    try:
        return ipaddress.ip_address(choice.address).packed
    except ValueError:  # no address, or not one: a peer sent it
        return b""
