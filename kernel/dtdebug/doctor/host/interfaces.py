"""Resolves names and lists interfaces of this host, and checks whether the launcher recognises the host."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import psutil

from dtdebug.doctor.host import routes
from dtdebug.doctor.host.interface_choice import bare
from dtdebug.doctor.types import Interface, Name
from dtdebug.live.probe.deadline_threads import begin

_RESOLVING = 4.0
"""Seconds to wait for a name; unreachable resolvers take longer."""
_MOST = 64


def interfaces() -> tuple[Interface, ...]:
    """Return this host's interfaces in the kernel's order."""
    order = {name: index for index, name in socket.if_nameindex()}
    states = psutil.net_if_stats()
    found = []
    for name, rows in psutil.net_if_addrs().items():
        known = [
            (r.address.partition("%")[0], r.netmask, r.family)
            for r in rows
            if r.family in (socket.AF_INET, socket.AF_INET6)
        ]
        known.sort(key=lambda row: row[2] != socket.AF_INET)
        state = states.get(name)
        addresses = tuple(f"{address}/{_prefix(mask)}" for address, mask, _ in known)[:_MOST]
        found.append(
            Interface(
                name=name,
                up=bool(state and state.isup),
                mtu=state.mtu if state else 0,
                speed=state.speed if state and state.speed < 1 << 24 else 0,
                addresses=addresses,
                strict=routes.is_strict(name),
            )
        )
    for name in order:
        if all(card.name != name for card in found):  # without an address
            state = states.get(name)
            found.append(Interface(name=name, up=bool(state and state.isup), mtu=state.mtu if state else 0))
    return tuple(sorted(found, key=lambda card: order.get(card.name, 1 << 30)))[:_MOST]


def _prefix(mask: str | None) -> int:
    if not mask:
        return 0
    try:
        return int(ipaddress.ip_address(mask.partition("/")[0])).bit_count()
    except ValueError:
        return 0


def resolve(name: str) -> Name:
    """Resolve a name in all families, in the resolver's order."""
    if not name:
        return Name(name="")

    def ask() -> list[str]:
        return [str(row[4][0]).partition("%")[0] for row in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]

    try:
        addresses = begin([ask], time.monotonic() + _RESOLVING)[0].result(timeout=_RESOLVING)
    except socket.gaierror as error:
        return Name(name=name, error=(error.strerror or str(error))[:200])
    except TimeoutError:
        return Name(name=name, error=f"no answer in {_RESOLVING:g} s")
    except (OSError, UnicodeError) as error:  # a name may contain anything
        return Name(name=name, error=str(error)[:200])
    return Name(name=name, addresses=tuple(dict.fromkeys(addresses))[:_MOST], place=_line(name, set(addresses)))


def _line(name: str, addresses: set[str]) -> str:
    """Return the /etc/hosts line that maps a name to one of the addresses, or ""."""
    try:
        with Path("/etc/hosts").open(encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).splitlines()
    except OSError:
        return ""
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if len(words) > 1 and words[0] in addresses and name in words[1:]:
            return f"/etc/hosts, line {number}"
    return ""


def takes_itself(host: str) -> bool:
    """True if torchrun's c10d rendezvous would recognise `host` as this host: by names, then by addresses."""
    if host == "localhost" or is_loopback(host):
        return True
    this = socket.gethostname()
    if host == this:
        return True
    theirs = set(resolve(host).addresses)
    try:
        rows = socket.getaddrinfo(this, None, proto=socket.IPPROTO_TCP, flags=socket.AI_CANONNAME)
    except OSError:
        return False
    return any((row[3] and row[3] == host) or str(row[4][0]) in theirs for row in rows)


@lru_cache(maxsize=1 << 14)
def is_loopback(address: str) -> bool:
    """True for a loopback address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def own_addresses(cards: Sequence[Interface]) -> set[str]:
    """Return all non-loopback addresses of a host."""
    return {bare(a) for card in cards for a in card.addresses if not is_loopback(bare(a))}


def outward(cards: Sequence[Interface]) -> list[str]:
    """Return the addresses at which peers can reach a host, physical cards first, without link-local ones."""
    found = [
        (card.name.startswith(("docker", "virbr", "br-", "veth", "cni", "flannel")), bare(a))
        for card in cards
        if card.up
        for a in card.addresses
    ]
    found = [(virtual, a) for virtual, a in found if not is_loopback(a) and not a.startswith(("fe80:", "169.254."))]
    return [a for _, a in sorted(found, key=lambda row: row[0])]
