"""Steps of training in what is printed: the last one, when the first ones came, and how long they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dtdebug.clean import clean
from dtdebug.logs.shapes import Kept
from dtdebug.triage.part import TellingLine

When = Callable[[bytes], float | None]
"""The time of a line."""
_STEP = re.compile(rb"(?i)(?:\b(?:step|iter(?:ation)?|batch)s?\b['\"]?[ _:=#\[(]{0,12}|\bit[=:] ?)(\d{1,9})\b")
_PACE = re.compile(
    rb"(?i)(?:(?:(?:step|iter(?:ation)?|batch|elapsed)[ _-]?tim(?:e|ing)[^0-9:=]{0,40}"
    rb"|\b(?:time|seconds)(?: \(s(?:ec)?\))?)[:=] {0,3}(\d{1,6}(?:\.\d{1,9})?) {0,2}(ms|s)?\b"
    rb"|\btime (\d{1,5}\.\d{1,9}) ?(ms|s)\b"
    rb"|\b(\d{1,5}\.\d{1,6}) ?(ms|s)/(?:it|step|batch))"
)
_PACES = 24
_MARKS, _SHORT = 6, 200


def progress(rows: Sequence[Kept], at: When) -> TellingLine | None:
    """The last line with a number of a step."""
    for row in reversed(rows):
        if _STEP.search(row.raw[:400]):
            return TellingLine(
                row.number, clean(row.raw[:_SHORT].decode("utf-8", "replace")).replace("\n", " "), at(row.raw)
            )
    return None


def marks(rows: Sequence[Kept], at: When) -> tuple[tuple[int, float], ...]:
    """The first steps with their times: what all ranks print at the same moment."""
    found: dict[int, float] = {}
    for row in rows:
        if len(found) >= _MARKS:
            break
        if (step := _STEP.search(row.raw[:400])) and (time := at(row.raw)) is not None:
            found.setdefault(int(step[1]), time)
    return tuple(found.items())


def until(rows: Sequence[Kept]) -> int:
    """The line of the last step but one: training went on beyond what was printed before it. 0 where there is none."""
    least, latest = 0, None
    for row in reversed(rows):
        if (step := _STEP.search(row.raw[:400])) is None:
            continue
        number = int(step[1])
        if latest is not None and number < latest:
            least = row.number
            break
        latest = number
    return least


def last_step(raws: Sequence[bytes]) -> int | None:
    """The number of the last step."""
    for raw in reversed(raws):
        if found := _STEP.search(raw[:400]):
            return int(found[1])
    return None


def paces(raws: Sequence[bytes]) -> tuple[float, ...]:
    """Seconds of the last steps, where they are printed."""
    found = []
    for raw in raws[-2 * _PACES :]:
        if hit := _PACE.search(raw[:600]):
            value, unit = next((hit[n], hit[n + 1]) for n in (1, 3, 5) if hit[n])
            found.append(round(float(value) / (1000 if unit == b"ms" else 1), 6))
    return tuple(found[-_PACES:])


def clocked(rows: Sequence[Kept], at: When) -> tuple[float, ...]:
    """Seconds of the last steps, by the times of their lines."""
    found: list[float] = []
    before: tuple[int, float] | None = None
    for row in rows[-2 * _PACES :]:
        if (step := _STEP.search(row.raw[:400])) and (time := at(row.raw)) is not None:
            if before is not None and int(step[1]) > before[0] and time > before[1]:
                found.append(round((time - before[1]) / (int(step[1]) - before[0]), 3))
            before = int(step[1]), time
    return tuple(found[-_PACES:])
