"""Analyses the telling lines of a stream: their times, their kind of failure, and whether training continued."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice, takewhile

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs import training_steps
from dtdebug.recorded.job_logs.line_judge import Judge, shape
from dtdebug.recorded.job_logs.part import TellingLine
from dtdebug.recorded.job_logs.training_steps import When
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug_taxonomy.logs import event_reader, prefixes, progress

_TOLD, _WORDS = 240, 1_000
"""Maximum number of telling lines of a stream, and of characters of each."""
_CALL = re.compile(rb"SeqNum=\d{1,18}, OpType=\w{1,40}, NumelIn=\d{1,18}, NumelOut=\d{1,18}")
_REACHED = re.compile(rb"ast enqueued (?:NCCL )?work: -?\d{1,18}")
_LAST_WORDS = 60
"""Number of lines at the end in which telling lines count as the end of the stream."""
_ABOVE = 50
"""Maximum distance to a line above that provides the time of a line without one."""
BELOW = 64
"""Maximum number of other printers' lines after a traceback in a shared log."""
_FAR = 1 << 62
_ONS = 8
"""Maximum number of survived tracebacks that distinguish kinds of streams: 100 retries equal 101."""
_SHORT = 200


def how_it_ended(
    judge: Judge, lined: Sequence[KeptLine], telling: Sequence[KeptLine], went_on: Sequence[KeptLine]
) -> str:
    """Return the kind of the telling lines that end a stream: the last without another line or steps after them."""
    last = lined[-_LAST_WORDS:]
    begin = max(training_steps.until(last), *(row.number for row in went_on), 0)
    begin = max(begin, last[0].number if len(last) == _LAST_WORDS else 0)
    numbers = {row.number: place for place, row in enumerate(last)}
    found: list[KeptLine] = []
    for row in reversed(telling):
        if row.number <= begin or (found and numbers.get(row.number, 0) + 1 < numbers.get(found[-1].number, 0)):
            break
        found.append(row)
    return kind_of(found, ()) if any(judge.says(row.raw) for row in found) else ""


def went_on(lined: Sequence[KeptLine], telling: Sequence[KeptLine], *, alone: bool) -> list[KeptLine]:
    """Return the first line with progress after each traceback, if it comes before the next: that one ended nothing."""
    begins = [row.number for row in telling if b"Traceback (most" in row.raw]
    if not begins:
        return []
    known = {row.number for row in telling}
    found, place = [], 0
    for begin, until in zip(begins, [*begins[1:], _FAR], strict=True):
        while place < len(lined) and lined[place].number <= begin:
            place += 1
        if (says := _handled_line(begin, until, telling, lined, alone=alone)) is not None:
            found.append(says)
            continue
        inside, bar = True, progress.ProgressBar()
        for row in lined[place:]:
            if row.number >= until:
                break
            inside = inside and row.number in known
            if inside or row.number in known:
                continue
            words = _words(row.raw[:300])
            if progress.PROGRESS.search(words):
                found.append(row)  # a bar's earlier state too: the next one shows progress only in comparison
                if progress.has_advanced(bar, words):
                    break
    return found


def _handled_line(
    begin: int, until: int, telling: Sequence[KeptLine], lined: Sequence[KeptLine], *, alone: bool
) -> KeptLine | None:
    """Return the line below a traceback if it reports that the program continues."""
    above = bisect_right(telling, begin, key=lambda row: row.number)
    inside = takewhile(lambda row: row.number < until, islice(telling, above, None))
    last = next(
        (r for r in inside if not prefixes.without_prefixes(_words(r.raw[:_SHORT])).body.startswith((" ", "\t"))), None
    )
    if last is None:
        return None
    below = bisect_right(lined, last.number, key=lambda row: row.number)
    near = below < len(lined) and lined[below].number <= min(until - 1, last.number + (1 if alone else BELOW))
    return lined[below] if near and event_reader.goes_on(_words(lined[below].raw[:_SHORT])) else None


def _words(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


_Times = Sequence[tuple[float | None, float | None]]


def times_of(lined: Sequence[KeptLine], rows: Sequence[KeptLine], at: When) -> _Times:
    """Return each row's time, its own or that of a line shortly above, and the latest time at which it was printed."""
    both = sorted({*lined, *rows})
    places = [bisect_left(both, row) for row in rows]
    found: list[float | None] = []
    time: float | None = None
    seen = 0
    for row, place in zip(rows, places, strict=True):
        least = max(seen, row.number - _ABOVE - 1)
        for above in reversed(range(place + 1)):
            if both[above].number <= least:
                break
            if (own := at(both[above].raw)) is not None:
                time, seen = own, both[above].number
                break
        near = row.number - seen <= _ABOVE
        found.append(time if near else None)
        seen = row.number if near else seen
    until: list[float | None] = []
    later, end = None, len(both)
    for place in reversed(places):
        own = next((t for n in range(place, end) if (t := at(both[n].raw)) is not None), None)
        later, end = own if own is not None else later, place
        until.append(later)
    return list(zip(found, reversed(until), strict=True))


def told_lines(rows: Sequence[KeptLine], times: _Times) -> tuple[TellingLine, ...]:
    """Return the rows as text, each with its times."""
    plain = [_words(row.raw).replace("\n", " ") for row in rows]
    cleaned = clean("\n".join(plain)).split("\n")  # all at once: each kind of secret is searched for once
    if len(cleaned) != len(rows):
        cleaned = [clean(text) for text in plain]
    return tuple(
        TellingLine(row.number, text, *time)
        for row, time, whole in zip(rows, times, cleaned, strict=True)
        for text in _texts(whole)
    )


def first_and_last(rows: list[KeptLine]) -> list[KeptLine]:
    """Return the first and the last rows if there are many."""
    return [*rows[: _TOLD // 2], *rows[-_TOLD // 2 :]] if len(rows) > _TOLD else rows


def _texts(text: str) -> list[str]:
    """Return a line as a list; for a JSON record the lines of its message, as its other fields are already known."""
    rows = prefixes.records(text) if text.startswith("{") else None
    return [text[:_WORDS]] if rows is None else [row.body[:_WORDS] for row in rows]


def kind_of(telling: Sequence[KeptLine], went_on: Sequence[KeptLine]) -> str:
    """Return a key of the telling lines' shapes, the collective that they name, and whether training continued."""
    shapes = {
        shape(text.encode()) if row.raw[:1] == b"{" else shape(row.raw)
        for row in telling
        for text in (_texts(clean(_words(row.raw)).replace("\n", " ")) if row.raw[:1] == b"{" else ("",))
    }
    if not shapes:
        return ""
    calls = {found[0] for row in telling if b"Watchdog" in row.raw and (found := _CALL.search(row.raw))}
    if not calls:  # a rank that did not time out says how far it is: others may be further
        calls = {found[0] for row in telling if b"ast enqueued" in row.raw and (found := _REACHED.search(row.raw))}
    begin = max((row.number for row in telling if b"Traceback (most" in row.raw), default=0)
    on = [b"went on"] * min(len(went_on), _ONS)
    on += [b"at last"] if went_on and went_on[-1].number > begin else []
    return hashlib.blake2b(b"\n".join([*sorted(shapes), *sorted(calls), *on]), digest_size=8).hexdigest()
