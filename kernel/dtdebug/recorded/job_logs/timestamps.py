"""Parses the time at the start of a line as seconds since the epoch; a time without a date is rejected as a counter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

_AHEAD = 100
"""Bytes of a line searched for its time, including prefixes."""
_MONTHS = {m: n for n, m in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_CLOCK = rb"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_ISO = re.compile(rb"\b(\d{4})[-/](\d\d)[-/](\d\d)[T _]" + _CLOCK + rb"(Z|[+-]\d\d:?\d\d)?")
_GLOG = re.compile(rb"\[?[IWEF](\d{1,2})(\d\d) " + _CLOCK + rb"(?=[ \d])")
_NAMED = re.compile(rb"\b(" + b"|".join(_MONTHS) + rb") {1,2}(\d{1,2}) (?:(\d{4}) )?" + _CLOCK + rb"(?: (\d{4}))?")

_SLASHED = re.compile(rb"\b(\d\d)/(\d\d)/(\d{4})[ ,]{1,2}" + _CLOCK + rb"(?: ([AaPp][Mm])\b)?")
_EPOCH = re.compile(rb"\[?(1\d{9}\.\d{1,9})\b")
_FIELD = re.compile(rb'"@?(?:ts|time|timestamp|asctime)" ?: ?"([^"]{8,60})"')
_LATEST = 32_503_680_000
"""Beginning of the year 3000: what a clock is moved by leaves any earlier time a date."""
_RECORD = 4_000
"""Bytes of a JSON line searched for its time."""


def when(line: bytes, year: int, zone: float = 0.0) -> float | None:
    """Return seconds since the epoch by the clock that wrote the line, or None.

    `year` is used for formats without a year; `zone` is the offset from UTC in seconds of a time without a zone.
    """
    if line[:1] == b"{" and (found := _FIELD.search(line[:_RECORD])):
        return _of(found[1], year, zone)
    return _of(line[:_AHEAD], year, zone)


@lru_cache(maxsize=8192)  # several callers ask for the same line
def _of(head: bytes, year: int, zone: float) -> float | None:
    found = _parse(head, year, zone)
    return found if found is not None and 0 <= found < _LATEST else None


def _parse(head: bytes, year: int, zone: float) -> float | None:
    try:
        if found := _ISO.search(head):
            ahead = zone if found[8] is None else _ahead(found[8])
            return _seconds((int(found[1]), int(found[2]), int(found[3])), found.groups()[3:7]) - ahead
        if found := _NAMED.search(head):
            day = (int(found[3] or found[8] or year), _MONTHS[found[1]], int(found[2]))
            return _seconds(day, found.groups()[3:7]) - zone
        if found := _GLOG.search(head):
            return _seconds((year, int(found[1]), int(found[2])), found.groups()[2:6]) - zone
        if found := _SLASHED.search(head):
            return _parse_slashed(found) - zone
        if found := _EPOCH.match(head):
            return float(found[1])
    except ValueError:  # the 31st of February
        return None
    return None


def zone_of(lines: Iterable[bytes]) -> float:
    """Return the offset from UTC in seconds that the first line with a zone names; 0 if no line has a zone."""
    for line in lines:
        if (found := _ISO.search(line[:_AHEAD])) and found[8]:
            return _ahead(found[8])
    return 0.0


def year_of(lines: Iterable[bytes]) -> int:
    """Return the year of the first line with a full date; 0 if there is none."""
    return next((int(found[1]) for line in lines if (found := _ISO.search(line[:_AHEAD]))), 0)


def _parse_slashed(found: re.Match[bytes]) -> float:
    """Parse `03/01/2026 10:00:00 PM`: the month first, as in the examples of libraries, unless it exceeds 12."""
    month, day = int(found[1]), int(found[2])
    if month > 12:
        month, day = day, month
    half = {b"P": 12, b"A": 0}.get((found[8] or b"-")[:1].upper())
    hour = int(found[4]) if half is None else int(found[4]) % 12 + half
    clock = (b"%02d" % hour, *found.groups()[4:7])
    return _seconds((int(found[3]), month, day), clock)


def _seconds(day: tuple[int, int, int], clock: Sequence[bytes | None]) -> float:
    """Return epoch seconds of a day and of the printed hour, minute, second and fraction."""
    hour, minute, second, part = clock
    base = datetime(*day, int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC).timestamp()
    return base + (int(part) / 10 ** len(part) if part else 0.0)


def _ahead(zone: bytes | None) -> float:
    """Return the offset of a zone from UTC in seconds."""
    if not zone or zone == b"Z":
        return 0.0
    return (-1 if zone[:1] == b"-" else 1) * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)


def format_clock(seconds: float | None) -> str:
    """Format a time as `03:36:40`; empty for None."""
    return _formatted(seconds, "%H:%M:%S")


def stamp(seconds: float | None) -> str:
    """Format a time as `2026-11-22 03:36:40`, as programs read it; empty for None."""
    return _formatted(seconds, "%Y-%m-%d %H:%M:%S")


def _formatted(seconds: float | None, form: str) -> str:
    try:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):  # in a part that was given
        return ""
