"""Hosts that arrived, with their probes indexed by called host and address."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from dtdebug.doctor.types import Arrival, Try


class Hosts(list[Arrival]):
    """Arrived hosts, in the order that their probes number them."""

    def __init__(self, came: Iterable[Arrival] = ()) -> None:
        super().__init__(came)

    @cached_property
    def _tries_by_host(self) -> list[dict[str, dict[int, Try]]]:
        found: list[dict[str, dict[int, Try]]] = [{} for _ in self]
        for caller, came in enumerate(self):
            for tried in came.tries:
                if 0 <= tried.node < len(self) and tried.node != caller:  # a peer may send any number
                    found[tried.node].setdefault(tried.address, {})[caller] = tried
        return found

    def tries_at(self, called: int, address: str) -> dict[int, Try]:
        """Return caller -> probe of an address of the called host."""
        return self._tries_by_host[called].get(address, {})

    def addresses(self, called: int) -> list[str]:
        """Return the addresses of a host that were probed."""
        return list(self._tries_by_host[called])

    def share(self, one: int, other: int) -> bool:
        """True if both run on the same machine."""
        return bool(self[one].look.boot) and self[one].look.boot == self[other].look.boot
