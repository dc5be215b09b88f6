"""Opens what holds curves, by content: event files, tables, and logs; nothing is guessed from a name."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from dtdebug.recorded.curves.curve import Curves, Owner
from dtdebug.recorded.curves.event_files import read_scalars
from dtdebug.recorded.curves.forms import form
from dtdebug.recorded.curves.names import meaning
from dtdebug.recorded.curves.printed import PrintedLines
from dtdebug.recorded.curves.series import Series
from dtdebug.recorded.curves.tables import read_csv, read_mlflow, read_trainer_state
from dtdebug.recorded.log_files.line_blocks import lines_of

if TYPE_CHECKING:
    from dtdebug.recorded.job_logs.rank_from_path import LogOwner
    from dtdebug.recorded.log_files.excerpt import LineReader
    from dtdebug.recorded.log_files.sources import LogSource

_HEAD, _STATE = 64 << 10, 256 << 20
_SHOWN = 4


class LogCurves:
    """Curves of logs, collected while others read them; what holds nothing but curves is opened afterwards."""

    def __init__(self) -> None:
        self.series = Series()
        self.notes: list[str] = []
        self.left: list[tuple[LogSource, LogOwner]] = []
        """Files that no reader has taken lines of: event files, tables, what can't be read."""

    def reader(self, source: LogSource, whose: LogOwner) -> LineReader | None:
        """Return what reads the curves in the lines of a log; None for logs of the machine."""
        if whose.machine:
            return None
        self.left.append((source, whose))
        return _LineCurves(self, source, whose)

    def add(self, other: LogCurves) -> None:
        """Add what was collected of other logs."""
        self.series.add(other.series)
        self.notes += other.notes
        self.left += other.left

    def curves(self) -> Curves:
        """Return all curves, after reading the files that are left."""
        from dtdebug.recorded.log_files.sources import open_log

        notes = [*self.notes]
        for source, whose in self.left:
            try:
                with open_log(source) as file:
                    notes += _read(file, self.series, source.name, whose.rank)
            except (OSError, ValueError) as error:
                notes.append(f"{source.name}: {error}")
        if self.series.full:
            notes.append("more curves or values than are read: the rest was left out")
        found = self.series.curves()
        notes += [
            f"{curve.owner.file}: several counters run through each other in `{curve.name.name}`: not judged"
            for curve in found
            if curve.mixed and curve.kind == "loss"
        ][:_SHOWN]
        return Curves(found, notes)


class _LineCurves:
    """Reader of the curves in the lines of one log."""

    def __init__(self, collected: LogCurves, source: LogSource, whose: LogOwner) -> None:
        self._collected, self._log = collected, (source, whose)
        self._lines = PrintedLines(collected.series, source.name, whose.rank)
        self._is_log: bool | None = None

    def read(self, block: bytes, number: int = 1) -> int:
        if self._is_log is None:
            self._is_log = not (self._log[0].size and form(block[:_HEAD]))  # a pipe can't be read again
            if self._is_log:
                self._collected.left.remove(self._log)
        return self._lines.read(block, number) if self._is_log else number


def read_curves(paths: Sequence[str]) -> Curves:
    """Read the curves of files and folders; what can't be read is noted."""
    from dtdebug.recorded.job_logs.rank_from_path import of_paths
    from dtdebug.recorded.log_files.sources import find_logs

    sources, unread = find_logs(list(paths))
    collected = LogCurves()
    collected.notes += unread
    owners = of_paths([source.name for source in sources])
    collected.left = [(source, whose) for source, whose in zip(sources, owners, strict=True) if not whose.machine]
    return collected.curves()


def read_printed(text: str, name: str) -> Curves:
    """Read the curves that a text prints."""
    series = Series()
    PrintedLines(series, name).read(text.encode("utf-8", "replace"))
    return Curves(series.curves(), [])


def _read(file: BinaryIO, series: Series, name: str, rank: int | None) -> Iterator[str]:
    """Read one file; yield notes."""
    head = file.read(_HEAD)
    kind = form(head)
    whole: BinaryIO = _Joined(head, file)  # type: ignore[assignment]
    if kind.startswith("an event file"):
        yield from _read_events(whole, series, name, rank)
    elif kind.startswith("the state"):
        data = head + file.read(_STATE)
        if not read_trainer_state(data, series, name):
            yield f"{name}: is no whole JSON: it is cut off, or still written"
    elif kind.startswith("a metric"):
        read_mlflow((line for run in lines_of(whole) for line in run.split(b"\n")), series, name)
    elif kind:
        text = io.TextIOWrapper(io.BufferedReader(_Raw(whole)), "utf-8", "replace", newline="")
        read_csv(text, series, name, rank)
    else:
        reader, number = PrintedLines(series, name, rank), 1
        for run in lines_of(whole):
            number = reader.read(run, number)


def _read_events(file: BinaryIO, series: Series, name: str, rank: int | None) -> Iterator[str]:
    def wanted(tag: str) -> bool:
        found = meaning(tag)
        return found is not None and found.kind not in ("step", "epoch")

    found, damage = read_scalars(file, wanted)
    yield from (f"{name}: byte {row.offset:,}: {row.what}" for row in damage[:_SHOWN])
    owner = Owner(name, rank)
    for tag, rows in found.items():
        means = meaning(tag)
        curve = series.curve(owner, means) if means is not None else None
        if curve is None or len(curve):  # two tags of one name: the first counts
            continue
        curve.steps, curve.values = rows.steps, rows.values
        curve.lines = array("q", bytes(8 * len(rows.steps)))
        if curve.name.factor != 1:
            curve.values = array("d", [value * curve.name.factor for value in rows.values])


class _Joined:
    """File whose beginning has been read."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        self._head, self._file = head, file

    def read(self, size: int = -1) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            if size < 0 or size >= len(head):
                return head + self._file.read(size - len(head) if size >= 0 else -1)
            self._head = head[size:]
            return head[:size]
        return self._file.read(size)


class _Raw(io.RawIOBase):
    """The same as a raw stream."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)
