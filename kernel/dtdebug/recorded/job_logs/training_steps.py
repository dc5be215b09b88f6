"""Extracts training steps from printed lines: the last one, times of the first ones, and durations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from statistics import median

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs import step_rates
from dtdebug.recorded.job_logs.part import Gap, TellingLine
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug_taxonomy.logs.progress import OTHER_BAR, STEP

When = Callable[[bytes], float | None]
"""Returns the time of a line."""
_STEP = re.compile(STEP.pattern.encode())
_NO_TRAINING = re.compile(OTHER_BAR.pattern.encode())
_HEAD = 400
"""Bytes of a line searched for its step number."""
_PACES = 24
_FIRST, _MARKS, _SHORT = 6, 6, 200
_STALL, _TIMES, _ENOUGH = 300.0, 10, 4
"""Seconds, and ratio to the usual gap, from which a step stalls; minimum number of gaps to know the usual one."""


def _number(raw: bytes) -> int | None:
    """Return the step that a line names."""
    return _step(raw[:_HEAD])


@lru_cache(maxsize=4096)  # several callers ask for the same line
def _step(head: bytes) -> int | None:
    found = _STEP.search(head)
    return None if found is None or _is_other_bar(head) else int(found[1])


def _is_other_bar(raw: bytes) -> bool:
    return b"%|" in raw and _NO_TRAINING.match(raw[:_HEAD]) is not None


def progress(rows: Sequence[KeptLine], at: When) -> TellingLine | None:
    """Return the last line with a step number."""
    for row in reversed(rows):
        if _number(row.raw) is not None:
            return TellingLine(
                row.number, clean(row.raw[:_SHORT].decode("utf-8", "replace")).replace("\n", " "), at(row.raw)
            )
    return None


def marks(rows: Sequence[KeptLine], at: When) -> tuple[tuple[int, float], ...]:
    """Return the first steps with their times, which all ranks print at the same moment."""
    found: dict[int, float] = {}
    for row in rows:
        if len(found) >= _MARKS:
            break
        if (step := _number(row.raw)) is not None and (time := at(row.raw)) is not None:
            found.setdefault(step, time)
    return tuple(found.items())


def until(rows: Sequence[KeptLine]) -> int:
    """Return the line of the last step if a lower one follows, up to which training continued; 0 if there is none."""
    least, latest = 0, None
    for row in reversed(rows):
        if (number := _number(row.raw)) is None:
            continue
        if latest is not None and number < latest:
            least = row.number
            break
        latest = number
    return least


def last_step(raws: Sequence[bytes]) -> int | None:
    """Return the number of the last step."""
    for raw in reversed(raws):
        if (number := _number(raw)) is not None:
            return number
    return None


def paces(raws: Sequence[bytes]) -> tuple[float, ...]:
    """Return the printed seconds of the last steps."""
    return tuple(_seconds(raws[-2 * _PACES :]))[-_PACES:]


def first_paces(raws: Sequence[bytes]) -> tuple[float, ...]:
    """Return the printed seconds of the first steps, except for the very first, which includes warm-up."""
    return tuple(islice(_seconds(raws), 1, 1 + _FIRST))


def _seconds(raws: Iterable[bytes]) -> Iterator[float]:
    return (row for raw in raws if not _is_other_bar(raw) and (row := step_rates.seconds(raw)) is not None)


def longest(rows: Sequence[KeptLine], at: When) -> Gap | None:
    """Return the longest gap between consecutive printed steps near the end if it is a stall; None without times."""
    found: list[Gap] = []
    before: tuple[int, float] | None = None
    for row in rows:
        if (step := _number(row.raw)) is None or (time := at(row.raw)) is None:
            continue
        if before is not None and step > before[0]:
            found.append(Gap(before[0], before[1], round((time - before[1]) / (step - before[0]), 3)))
        before = step, time
    most = max(found, key=lambda gap: gap.seconds, default=None)
    if most is None or len(found) < _ENOUGH or most.seconds < max(_STALL, _TIMES * median(g.seconds for g in found)):
        return None
    return most


def clock_paces(rows: Sequence[KeptLine], at: When) -> tuple[float, ...]:
    """Return the seconds of the last steps, computed from the times of their lines."""
    found: list[float] = []
    before: tuple[int, float] | None = None
    for row in rows[-2 * _PACES :]:
        if (step := _number(row.raw)) is not None and (time := at(row.raw)) is not None:
            if before is not None and step > before[0] and time > before[1]:
                found.append(round((time - before[1]) / (step - before[0]), 3))
            before = step, time
    return tuple(found[-_PACES:])
