"""Reads what NCCL's Inspector writes: one JSON object a line, for the last collective of each communicator.

The format is https://github.com/NVIDIA/nccl/tree/master/ext-profiler/inspector#output-example; it samples, so that not
every collective is recorded, nor the same ones by all ranks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dtdebug.errors import UsageError
from dtdebug.storage import safe_open
from dtdebug.storage.unpacking import GunzippedStream, UnpackedStream

_SIGN = b'"coll_perf"'
_LINE, _MOST, _ROWS = 256 << 10, 1 << 30, 2_000_000
"""Maximum bytes of a line and of a file, and records of all files together."""
_RANKS = 1 << 20
_GZIP = b"\x1f\x8b"


class Header(msgspec.Struct, frozen=True):
    """The communicator, and this process in it."""

    id: str
    rank: int
    n_ranks: int
    nnodes: int = 1


class Metadata(msgspec.Struct, frozen=True):
    """The process that wrote the record."""

    hostname: str = ""
    pid: int = 0
    dump_timestamp_us: int = 0


class Performance(msgspec.Struct, frozen=True):
    """One collective on one rank."""

    coll: str
    coll_sn: int
    coll_msg_size_bytes: int
    coll_exec_time_us: float
    coll_busbw_gbs: float = 0.0
    coll_timing_source: str = ""


class Record(msgspec.Struct, frozen=True):
    """One line of a file."""

    header: Header
    metadata: Metadata
    coll_perf: Performance

    @property
    def is_sound(self) -> bool:
        """True if its figures can be so."""
        head, seen = self.header, self.coll_perf
        return 0 <= head.rank < head.n_ranks < _RANKS and seen.coll_exec_time_us > 0 and seen.coll_msg_size_bytes >= 0


class Recording(NamedTuple):
    """Records of all files, and how much of these was understood."""

    records: list[Record]
    known: int
    lines: int
    notes: list[str]
    whole: bool = True


def is_recording(head: bytes) -> bool:
    """True if a file begins with a record of the Inspector."""
    line = head.partition(b"\n")[0]
    if not line.lstrip().startswith(b"{") or _SIGN not in line:
        return False
    return _record(line) is not None


def is_recording_file(path: Path) -> bool:
    """True if a file can be read and is a recording, packed by gzip or not."""
    try:
        with _open(path) as file:
            return is_recording(file.peek(_LINE))
    except (UsageError, OSError, EOFError, zlib.error):
        return False


def read(files: Sequence[Path]) -> Recording:
    """Return the records of the files.

    Raises:
        UsageError: a file can't be read.

    """
    records: list[Record] = []
    notes: list[str] = []
    lines, whole = 0, True
    for path in files:
        known = number = 0
        with _open(path) as file:
            for line in _lines(file, path):
                number += 1
                record = _record(line)
                if record is not None and record.is_sound:
                    known += 1
                    records.append(record)
                if len(records) >= _ROWS:
                    break
        lines += number
        if known < number:
            whole = whole and number - known <= 1  # the last line of a running job is cut
            notes.append(f"{path.name}: {number - known:,} of {number:,} lines are no records of the Inspector")
        if len(records) >= _ROWS:
            notes.append(f"only the first {_ROWS:,} records were read")
            whole = False
            break
    return Recording(records, len(records), lines, notes, whole)


def _record(line: bytes) -> Record | None:
    try:
        return _decoder.decode(line)
    except (ValueError, RecursionError):
        return None


_decoder = msgspec.json.Decoder(Record)


def _lines(file: Any, path: Path) -> Iterator[bytes]:
    left = _MOST
    while left > 0:
        try:
            line = file.readline(_LINE)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"slow {path}: damaged: {error}") from None
        if not line:
            return
        left -= len(line)
        if line.strip():
            yield line


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    try:
        file = BufferedReader(safe_open.log(path), _LINE)
    except OSError as error:
        raise UsageError(f"slow {path}: can't be read: {error.strerror}") from None
    with file:
        if file.peek(2)[:2] != _GZIP:
            yield file
        else:
            with BufferedReader(UnpackedStream(GunzippedStream(file), path.stat().st_size), _LINE) as unpacked:
                yield unpacked
