"""The time that a line begins with, as seconds since the epoch. Without its date a time is none: counters look alike."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

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
            y, m, d, hour, minute, second, part, zone = found.groups()
            return _seconds(int(y), int(m), int(d), hour, minute, second, part, zone)
        if found := _NAMED.search(head):
            name, d, hour, minute, second, part, y = found.groups()
            return _seconds(int(y or year), _MONTHS[name], int(d), hour, minute, second, part, None)
        if found := _GLOG.search(head):
            m, d, hour, minute, second, part = found.groups()
            return _seconds(year, int(m), int(d), hour, minute, second, part, None)
    except ValueError:  # the 31st of February
        return None
    return None


def _seconds(
    year: int, month: int, day: int, hour: bytes, minute: bytes, second: bytes, part: bytes | None, zone: bytes | None
) -> float:
    shift = UTC
    if zone and zone != b"Z":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        if hours < 24 and minutes < 60:  # noqa: PLR2004 - a day and an hour
            shift = timezone((-1 if zone[:1] == b"-" else 1) * timedelta(hours=hours, minutes=minutes))
    base = datetime(year, month, day, int(hour), int(minute), int(second), tzinfo=shift).timestamp()
    return base + (int(part) / 10 ** len(part) if part else 0.0)


def shown(seconds: float | None) -> str:
    """`03:36:40`; empty for None."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def stamp(seconds: float | None) -> str:
    """`2026-11-22 03:36:40`, as programs read it; empty for None."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
