"""Opens what holds curves, by content: event files, tables, and logs; nothing is guessed from a name."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from dtdebug.recorded.curves.curve import Curves, Name, Owner, meaning
from dtdebug.recorded.curves.event_files import Damage, is_event_file, scalars
from dtdebug.recorded.curves.printed import PrintedLines
from dtdebug.recorded.curves.series import Series
from dtdebug.recorded.curves.tables import csv_columns, is_mlflow, read_csv, read_mlflow, read_trainer_state
from dtdebug.recorded.log_files.line_blocks import lines_of

_HEAD, _STATE = 64 << 10, 256 << 20
_HISTORY = re.compile(rb'"log_history"\s*:\s*\[')
_SHOWN = 4


def form(head: bytes, size: int = 0) -> str:
    """Return the form of a file that holds nothing but curves, in words; "" for logs and all else."""
    if is_event_file(head):
        return "an event file of TensorBoard"
    if head[:1] == b"{" and _HISTORY.search(head):
        return "the state of a Trainer"
    if is_mlflow(head):
        return "a metric of MLflow"
    first, _, rest = head.partition(b"\n")
    if rest and b"," in first and csv_columns(first.decode("utf-8", "replace").rstrip("\r")) is not None:
        return "a table of metrics"
    return ""


def read_curves(paths: Sequence[str]) -> Curves:
    """Read the curves of files and folders; what can't be read is noted."""
    from dtdebug.recorded.job_logs.rank_from_path import of_paths
    from dtdebug.recorded.log_files.sources import find_logs, open_log

    sources, unread = find_logs(list(paths))
    series, notes = Series(), [*unread]
    for source, whose in zip(sources, of_paths([source.name for source in sources]), strict=True):
        if whose.machine:
            continue
        try:
            with open_log(source) as file:
                notes += _read(file, series, source.name, whose.rank)
        except (OSError, ValueError) as error:
            notes.append(f"{source.name}: {error}")
    if series.full:
        notes.append("more curves or values than are read: the rest was left out")
    found = series.curves()
    notes += [
        f"{curve.owner.file}: several counters run through each other in `{curve.name.name}`: not judged"
        for curve in found
        if curve.mixed and curve.kind == "loss"
    ][:_SHOWN]
    return Curves(found, notes)


def read_text(text: str, name: str) -> Curves:
    """Read the curves that a text prints."""
    series = Series()
    PrintedLines(series, name).read(text.encode("utf-8", "replace").split(b"\n"))
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
            lines = run.split(b"\n")
            if not lines[-1]:
                lines.pop()
            number = reader.read(lines, number)


def _read_events(file: BinaryIO, series: Series, name: str, rank: int | None) -> Iterator[str]:
    names: dict[str, Name | None] = {}
    owner = Owner(name, rank)
    add = series.add
    damage = 0
    for row in scalars(file):
        if isinstance(row, Damage):
            damage += 1
            if damage <= _SHOWN:
                yield f"{name}: byte {row.offset:,}: {row.what}"
            continue
        tag = row.tag
        try:
            found = names[tag]
        except KeyError:
            found = meaning(tag)
            names[tag] = found = None if found is not None and found.kind in ("step", "epoch") else found
        if found is not None:
            add(owner, found, row.value, row.step)


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
