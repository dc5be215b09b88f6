"""Curves that a job prints, read from the copy of its output: a fault is reported while it runs, and at its end."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dtdebug.storage import safe_open

if TYPE_CHECKING:
    import io

    from dtdebug.recorded.curves.finding import CurveFinding
    from dtdebug.recorded.curves.printed import PrintedLines
    from dtdebug.recorded.curves.report import CurveReading
    from dtdebug.recorded.curves.series import Series
    from dtdebug_taxonomy.presentation.case_json import Case

_NAME = "the job's output"
_PAUSE, _SHARE = 10.0, 0.02
"""Seconds between two looks, and the share of a core that they may take."""
_GROWN = 5
"""Values that a curve has more when a fault is seen again: only then it is reported while the job runs."""
_AT_ONCE = frozenset(("not_finite", "zero_rate", "scale_at_floor", "diverges", "rises_with_rate"))
"""Kinds that a later value hardly takes back; others are judged when the curve is complete."""
_CHUNK, _ANCHOR = 1 << 20, 4096
"""Bytes read at once, and the last bytes by which the place is found again when the copy was shortened."""
_OURS = re.compile(rb"(?m)^~ [^\n]*\n")
_MARK = re.compile(rb"(?m)^[12*] ")
_PATIENCE = 2.0
"""Seconds to wait at the end for a look that is under way."""


class PrintedCurves:
    """Follows the output of one job."""

    def __init__(self, path: Path) -> None:
        self._copy = _FollowedCopy(path)
        self._series: Series | None = None
        self._lines: PrintedLines | None = None
        self._number = 1
        self._next = time.monotonic() + _PAUSE
        self._seen: dict[tuple[str, str], int] = {}
        """Faults of the last look, and how many values their curves had when they were first seen."""
        self._said: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def look(self, now: float) -> list[str]:
        """Return the faults that are to be reported now, as sentences."""
        if now < self._next or not self._lock.acquire(blocking=False):
            return []
        try:
            began = time.thread_time()
            new = list(self._new_faults())
            self._next = now + max(_PAUSE, (time.thread_time() - began) / _SHARE)
            return new
        finally:
            self._lock.release()

    def reading(self) -> CurveReading | None:
        """Return the curves up to the end of the output, judged, and close it; None if there are none."""
        if not self._lock.acquire(timeout=_PATIENCE):
            return None
        try:
            self._read(whole=True)
            self._copy.close()
            found = self._judge()
        finally:
            self._lock.release()
        return found if found.curves else None

    def _new_faults(self) -> list[str]:
        if not self._read():
            return []
        reading = self._judge()
        now: dict[tuple[str, str], int] = {}
        new: list[str] = []
        for row in reading.findings:
            if row.kind not in _AT_ONCE or (key := (row.kind, row.curve)) in self._said:
                continue
            values = _values_of(row, reading)
            now[key] = self._seen.get(key, values)
            if values >= now[key] + _GROWN:
                self._said.add(key)
                new.append(row.says)
        self._seen = now
        return new

    def _judge(self) -> CurveReading:
        from dtdebug.recorded.curves.curve import Curves
        from dtdebug.recorded.curves.report import judge

        return judge(Curves(self._series.curves() if self._series is not None else [], []))

    def _read(self, *, whole: bool = False) -> bool:
        """Read what was printed since; True if there was something."""
        begin = self._number
        while block := self._copy.new_lines(whole=whole):
            if self._lines is None:
                from dtdebug.recorded.curves.printed import PrintedLines
                from dtdebug.recorded.curves.series import Series

                self._series = Series()
                self._lines = PrintedLines(self._series, _NAME)
            self._number = self._lines.read(_MARK.sub(b"", _OURS.sub(b"", block)), self._number)
        return self._number > begin


def _values_of(row: CurveFinding, reading: CurveReading) -> int:
    return max((len(curve) for curve in reading.curves if curve.name.name == row.curve), default=0)


class _FollowedCopy:
    """Whole new lines of a file that grows, and that is now and then replaced by a shorter one with the same end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        self._rest = self._end = b""

    def new_lines(self, *, whole: bool = False) -> bytes:
        """Return lines, at most some; with `whole` also what stands at the end without a line's end."""
        data = self._next_bytes()
        if data:
            self._end = (self._end + data)[-_ANCHOR:]
        lines, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if whole and not data:
            lines, newline, self._rest = self._rest, b"", b""
        return lines + newline or (self.new_lines(whole=whole) if data else b"")

    def close(self) -> None:
        """Read no further."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_bytes(self) -> bytes:
        with suppress(OSError):
            if self._file is None:
                self._file = safe_open.log(self._path)
            return self._file.read(_CHUNK) or self._after_replacement()
        return b""

    def _is_replaced(self) -> bool:
        if self._file is None:
            return False
        old, new = os.fstat(self._file.fileno()), self._path.stat()
        return (old.st_dev, old.st_ino) != (new.st_dev, new.st_ino)

    def _after_replacement(self) -> bytes:
        """Return what follows the last known bytes in the new file."""
        if not self._is_replaced() or self._file is None:
            return b""
        self._file.close()
        self._file = safe_open.log(self._path)
        content = self._file.readall()
        at = content.rfind(self._end) if self._end else 0
        return content[at + len(self._end) :] if at >= 0 else b""


def final_lines(reading: CurveReading | None, *, below: str = "", healthy: bool = False, full: bool = False) -> str:
    """Return what is to be shown of the curves when the job has ended; "" if there is nothing.

    `below`: the answer about something else that was shown, so that they are a line below it. `healthy`: say it too if
    nothing is wrong with them. `full`: show all of them.
    """
    from dtdebug.presentation.terminal import PREFIX, format_answer
    from dtdebug.recorded.curves import report

    if reading is None:
        return ""
    stream = sys.stderr
    lines: list[str] = []
    certain = any(row.kind in _AT_ONCE for row in reading.findings)
    if reading.faulty and (certain or healthy or below):  # of a plain run that succeeded nobody asked about its speed
        answer = report.short_answer(reading, stream)
        if below:
            line = report.also_line(reading)
            lines += [] if line in " ".join(below.split()) else [line]
            lines += (f"  {spot.code}" for spot in answer.spots if spot.code)
        else:
            lines.append(format_answer(answer, stream, more=report.MORE))
    elif healthy and not below and (line := report.summary_line(reading, stream)):
        lines.append(f"{PREFIX}{line}")
    if full:
        lines.append(report.table(reading, stream))
    return "\n".join(lines)


def with_curves(case: Case, reading: CurveReading | None) -> Case:
    """Return a case with a note on the gravest fault of the curves."""
    return msgspec.structs.replace(case, notes=(*case.notes, *fault_notes(reading)))


def fault_notes(reading: CurveReading | None) -> list[str]:
    """Return a note on the gravest fault of the curves, if there is one."""
    from dtdebug.recorded.curves.report import also_line

    return [also_line(reading)] if reading is not None and reading.faulty else []
