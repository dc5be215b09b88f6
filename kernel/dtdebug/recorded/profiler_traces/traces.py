"""Reads Chrome traces written by torch.profiler: bounded for any content, including truncated ones.

The format is https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; the categories are those
of Kineto (https://github.com/pytorch/kineto/blob/main/libkineto/include/ActivityType.h).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.errors import UsageError
from dtdebug.storage import safe_open

_MOST_FILES, _COMPRESSED, _BYTES, _EVENTS = 1024, 512 << 20, 1 << 30, 20_000_000
_GZIP = b"\x1f\x8b"
_RANK = re.compile(r"rank[-_.]?(\d{1,6})", re.IGNORECASE)
_YEARS = 1e17
"""Microseconds above which a timestamp is rejected."""


class TraceEvent(msgspec.Struct, frozen=True):
    """Complete event; times in microseconds."""

    name: str
    ts: float
    dur: float
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0


class _TraceFile(msgspec.Struct, frozen=True):
    traceEvents: list[msgspec.Raw]  # noqa: N815 - name in the file format
    distributedInfo: Any = None  # noqa: N815 - name in the file format


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Complete events of one rank, in order of time."""

    rank: int
    file: str
    events: tuple[TraceEvent, ...]
    notes: tuple[str, ...] = ()


def paths(given: list[Path]) -> list[Path]:
    """Return the files, and the traces in the folders.

    Raises:
        UsageError: a path does not exist, or there are no traces or too many.

    """
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            found += sorted(p for p in path.iterdir() if p.name.endswith((".json", ".json.gz")) and p.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise UsageError(f"slow {path}: is neither a file nor a folder")
    if not found:
        raise UsageError(f"slow {given[0]}: holds no trace (*.json, *.json.gz)")
    if len(found) > _MOST_FILES:
        raise UsageError(f"slow: {len(found)} traces; at most {_MOST_FILES} are compared at once")
    return found


def load(files: list[Path]) -> list[Trace]:
    """Return the traces by rank; if two files name one rank, or none does, ranks follow the order of file names.

    Raises:
        UsageError: a file is not a trace.

    """
    read = [_one(path) for path in files]
    named = [rank for rank, _ in read]
    unique = None not in named and len(set(named)) == len(named)
    traces = []
    for place, (path, (rank, trace)) in enumerate(zip(files, read, strict=True)):
        number = rank if unique and rank is not None else place
        note = () if unique else (f"{path.name} does not say its rank, or another says the same: taken as {number}",)
        traces.append(msgspec.structs.replace(trace, rank=number, notes=(*trace.notes, *note)))
    return sorted(traces, key=lambda t: t.rank)


def _one(path: Path) -> tuple[int | None, Trace]:
    raw = _bytes(path)
    notes: list[str] = []
    try:
        whole = msgspec.json.decode(raw, type=_TraceFile)
    except (ValueError, RecursionError):
        whole = _salvage_events(raw, path)
        notes.append(f"{path.name} is cut; what is complete was read")
    info = whole.distributedInfo
    rank = info.get("rank") if isinstance(info, dict) else None
    if not (type(rank) is int and 0 <= rank < 1 << 18):
        match = _RANK.search(path.name)
        rank = int(match[1]) if match else None
    events = sorted(_events(whole.traceEvents), key=lambda e: e.ts)
    if not events:
        raise UsageError(f"slow {path}: it has no event with a duration; is it a trace of torch.profiler?")
    return rank, Trace(rank=0, file=str(path), events=tuple(events), notes=tuple(notes))


def _events(raws: list[msgspec.Raw]) -> Iterator[TraceEvent]:
    decoder = msgspec.json.Decoder(TraceEvent)
    for raw in raws[:_EVENTS]:
        try:
            event = decoder.decode(raw)
        except (ValueError, RecursionError):  # other events: metadata, flows, counters
            continue
        if 0 <= event.ts < _YEARS and 0 < event.dur < _YEARS:
            yield event


def _bytes(path: Path) -> bytes:
    try:
        with BufferedReader(safe_open.log(path)) as file:
            raw = file.read(_COMPRESSED + 1)
    except OSError as error:
        raise UsageError(f"slow {path}: can't be read: {error.strerror}") from None
    if len(raw) > _COMPRESSED:
        raise UsageError(f"slow {path}: larger than {_COMPRESSED >> 20} MiB; record fewer steps")
    if raw[:2] != _GZIP:
        return raw
    unpacker = zlib.decompressobj(wbits=31)
    try:
        raw = unpacker.decompress(raw, _BYTES)
    except zlib.error as error:
        raise UsageError(f"slow {path}: damaged: {error}") from None
    if unpacker.unconsumed_tail:
        raise UsageError(f"slow {path}: unpacks to more than {_BYTES >> 20} MiB; record fewer steps")
    return raw


def _salvage_events(raw: bytes, path: Path) -> _TraceFile:
    """Return the complete events of a truncated file, as left by a killed job."""
    begin = raw.find(b'"traceEvents"')
    end = raw.rfind(b"}")
    for _ in range(64):
        if begin < 0 or end <= begin:
            break
        head = raw[:begin].rstrip().removeprefix(b"{").rstrip(b" \r\n\t,")
        for tail in (b"]}", b"}"):
            text = b"{" + (head + b"," if head else b"") + raw[begin : end + 1] + tail
            try:
                return msgspec.json.decode(text, type=_TraceFile)
            except (ValueError, RecursionError):
                continue
        end = raw.rfind(b"}", 0, end)
    raise UsageError(f"slow {path}: is not a trace: it is not JSON with traceEvents")
