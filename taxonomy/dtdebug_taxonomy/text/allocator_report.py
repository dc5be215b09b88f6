"""Amounts in the report of PyTorch's allocator when device memory runs out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.text.lazy_re import lazy_re

_SIZE = r"\d{1,12}(?:\.\d{1,3})? (?:[KMG]iB|bytes)"
_REPORTS = (
    lazy_re(
        rf"Tried to allocate (?P<asked>{_SIZE}) \(GPU (?P<gpu>\d{{1,3}}); (?P<total>{_SIZE}) total capacity;"
        rf" (?P<held>{_SIZE}) already allocated; (?P<free>{_SIZE}) free(?:; (?P<reserved>{_SIZE}) reserved in total)?"
    ),
    lazy_re(
        rf"Tried to allocate (?P<asked>{_SIZE})\. GPU (?P<gpu>\d{{1,3}}) has a total capaci?ty of (?P<total>{_SIZE}) of"
        rf" which (?P<free>{_SIZE}) is free\.(?P<rest>.{{0,2000}}?)Of the allocated memory (?P<held>{_SIZE}) is"
        rf" allocated by PyTorch.{{0,200}}?\b(?P<idle>{_SIZE}) is reserved by PyTorch but unallocated"
    ),
)
"""As PyTorch prints it up to 2.0, and since."""
_THIS = lazy_re(rf"this process has (?P<own>{_SIZE}) memory in use")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Amounts(NamedTuple):
    """Amounts of one report, in bytes."""

    gpu: int
    asked: float
    total: float
    free: float
    own: float
    """Amount that this process holds of the device."""
    idle: float
    """Amount of it that no tensor uses."""

    @property
    def others(self) -> float:
        """Return what other processes hold."""
        return self.total - self.free - self.own


def find_reports(text: str) -> Iterator[tuple[Amounts, re.Match[str]]]:
    """Yield the amounts of each report of a text, and where it stands."""
    for pattern in _REPORTS:
        for found in pattern.finditer(text):
            yield _amounts(found.groupdict()), found


def _amounts(seen: dict[str, str | None]) -> Amounts:
    def read(name: str) -> float:
        number, _, unit = (seen.get(name) or "0 bytes").partition(" ")
        return float(number) * _UNITS[unit]

    held = read("held")
    reserved = max(read("reserved"), held + read("idle"))
    this = _THIS.search(seen.get("rest") or "")
    seen["own"] = this["own"] if this is not None else None
    own = max(reserved, read("own"))
    return Amounts(int(seen["gpu"] or 0), read("asked"), read("total"), read("free"), own, reserved - held)
