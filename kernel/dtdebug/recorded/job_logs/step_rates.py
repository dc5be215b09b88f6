"""Parses the duration of a step as trainers print it: seconds or milliseconds per step, or steps per second."""

from __future__ import annotations

import re
from functools import lru_cache

_LONG = 1_000
"""Bytes of a line that are searched."""
_STEP = rb"(?:train[ _-]?)?(?:step|iter(?:ation)?|batch)s?"
_TAKES = re.compile(
    rb"(?i)(?:"
    # `elapsed time per iteration (ms): 2043.1`, `iter time (s): 2.0`, `train_step_timing in s=5.2`, `time_per_step:2.0`
    rb"\b(?:elapsed[ _]|perf/|timing_s/)?(?:"
    + _STEP
    + rb"[ _-]?tim(?:e|ing)|elapsed[ _-]?time|time[ _]per[ _]"
    + _STEP
    + rb"|(?<=timing_s/)step)"
    rb"(?P<unit>[^0-9:=|]{0,40}[:=]|) {0,3}(?P<named>\d{1,9}(?:\.\d{1,9})?) ?(?P<after>ms|s)?\b"
    # `Batch (t): 2.0`
    rb"|\bbatch \(t\): {0,3}(?P<batch>\d{1,6}\.\d{1,9})"
    # `time 135.67ms`, `Time: 0.412s`, `Time  0.512 ( 0.732)`, `seconds: 2.0`
    rb"|(?<![\w/])(?:time|seconds)(?: \(s(?:ec)?\))?[:=\t ]{1,4}(?P<time>\d{1,6}\.\d{1,9}) ?(?P<of_time>ms|s)?\b"
    # `2.00s/it`, `250ms/step`
    rb"|\b(?P<each>\d{1,6}(?:\.\d{1,6})?) ?(?P<of_each>ms|s)/(?:it|" + _STEP + rb")\b"
    # `| 230.12 ms |`
    rb"|\| {0,3}(?P<column>\d{1,7}\.\d{1,6}) (?P<of_column>ms|s) {0,3}\|"
    rb")"
)
_MILLI = re.compile(rb"(?i)\bms\b|milli")
_A_SECOND = re.compile(
    rb"(?i)(?:\b(?P<bar>\d{1,6}\.\d{1,6}) ?it/s\b"
    # `train_steps_per_second': 0.5`, `batches_per_second=0.5`, `ups=0.5`
    rb"|(?:" + _STEP + rb"|batches)_per_sec(?:ond)?['\"]?[:=] {0,3}(?P<named>\d{1,6}(?:\.\d{1,9})?)"
    rb"|\bups['\"]?[:=] {0,2}['\"]?(?P<ups>\d{1,6}(?:\.\d{1,9})?))"
)


_WORDS = (b"tim", b"seconds", b"(t)", b"/it", b"/step", b"/batch", b"/train", b"it/s", b"_sec", b"ups", b"|")
"""Each of these formats contains one of these words, which are faster to search for than the formats."""


@lru_cache(maxsize=512)
def seconds(raw: bytes) -> float | None:
    """Return the seconds per step that a line prints; None if it prints none."""
    head = raw[:_LONG]
    low = head.lower()
    if not any(word in low for word in _WORDS):
        return None
    if found := _TAKES.search(head):
        part = found.groupdict()
        value = next(part[name] for name in ("named", "batch", "time", "each", "column") if part[name])
        unit = next((part[n] for n in ("after", "of_time", "of_each", "of_column") if part[n]), part["unit"] or b"s")
        return round(float(value) / (1000 if _MILLI.search(unit) else 1), 6)
    if found := _A_SECOND.search(head):
        rate = float(next(group for group in found.groups() if group))
        return round(1 / rate, 6) if rate else None
    return None
