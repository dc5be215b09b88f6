"""The hosts that came, with what each tried of each, found by the host and the address that was called."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from dtdebug.doctor.facts import Came, Try


class Hosts(list[Came]):
    """A list of hosts, in the order of their numbers in what they tried."""

    def __init__(self, came: Iterable[Came] = ()) -> None:
        super().__init__(came)

    @cached_property
    def _tried(self) -> list[dict[str, dict[int, Try]]]:
        found: list[dict[str, dict[int, Try]]] = [{} for _ in self]
        for caller, came in enumerate(self):
            for tried in came.tries:
                if 0 <= tried.node < len(self) and tried.node != caller:  # a peer may send anything
                    found[tried.node].setdefault(tried.address, {})[caller] = tried
        return found

    def tried(self, called: int, address: str) -> dict[int, Try]:
        """Caller -> what it measured of an address of a host."""
        return self._tried[called].get(address, {})

    def addresses(self, called: int) -> list[str]:
        """The addresses of a host that were tried."""
        return list(self._tried[called])

    def share(self, one: int, other: int) -> bool:
        """Both are on one host."""
        return bool(self[one].look.boot) and self[one].look.boot == self[other].look.boot
