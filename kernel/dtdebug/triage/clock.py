"""The time that a line begins with, as seconds since the epoch; without its date it is none: counters look alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

_AHEAD = 100
"""Bytes of a line in which its time stands, prefixes before it included."""
_MONTHS = {m: n for n, m in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_CLOCK = rb"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_ISO = re.compile(rb"\b(\d{4})[-/](\d\d)[-/](\d\d)[T _]" + _CLOCK + rb"(Z|[+-]\d\d:?\d\d)?")
_GLOG = re.compile(rb"\[?[IWEF](\d{1,2})(\d\d) " + _CLOCK + rb"(?=[ \d])")
_NAMED = re.compile(rb"\b(" + b"|".join(_MONTHS) + rb") {1,2}(\d{1,2}) " + _CLOCK + rb"(?: (\d{4}))?")


def when(line: bytes, year: int) -> float | None:
    """Seconds since the epoch by the clock that wrote the line, or None; `year` is for forms that have none."""
    head = line[:_AHEAD]
    try:
        if found := _ISO.search(head):
            return _seconds((int(found[1]), int(found[2]), int(found[3])), found.groups()[3:7]) - _ahead(found[8])
        if found := _NAMED.search(head):
            return _seconds((int(found[7] or year), _MONTHS[found[1]], int(found[2])), found.groups()[2:6])
        if found := _GLOG.search(head):
            return _seconds((year, int(found[1]), int(found[2])), found.groups()[2:6])
    except ValueError:  # the 31st of February
        return None
    return None


def _seconds(day: tuple[int, int, int], clock: Sequence[bytes | None]) -> float:
    """A day and hour, minute, second and fraction as they were printed."""
    hour, minute, second, part = clock
    base = datetime(*day, int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC).timestamp()
    return base + (int(part) / 10 ** len(part) if part else 0.0)


def _ahead(zone: bytes | None) -> float:
    """Seconds that a zone is ahead of UTC."""
    if not zone or zone == b"Z":
        return 0.0
    return (-1 if zone[:1] == b"-" else 1) * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)


def shown(seconds: float | None) -> str:
    """`03:36:40`; empty for None."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def stamp(seconds: float | None) -> str:
    """`2026-11-22 03:36:40`, as programs read it; empty for None."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
