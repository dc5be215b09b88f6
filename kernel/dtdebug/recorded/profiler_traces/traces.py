"""Reads Chrome traces written by torch.profiler: bounded for any content, including truncated ones.

The format is https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; the categories are those
of Kineto (https://github.com/pytorch/kineto/blob/main/libkineto/include/ActivityType.h).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.errors import UsageError
from dtdebug.storage import budget, safe_open
from dtdebug.storage.unpacking import GunzippedStream, UnpackedStream

_MOST_FILES, _BYTES, _EVENTS, _SEEN = 1024, 2 << 30, 1_500_000, 4_000_000
"""Maximum number of files, and of bytes, kept events and events of any kind of all traces together."""
_CHUNK, _HEAD, _LONGEST = 4 << 20, 16 << 20, 64 << 20
"""Bytes read at a time, and maximum bytes before the first event and of one event."""
_BETWEEN = re.compile(rb"}\s{0,64}+,\s{0,64}+{")
"""Boundary between two events; a text in an event may look the same."""
_TRIES = 64
_FOREIGN = 200_000
"""Number of events after which a trace without a single known one is given up."""
ENOUGH = 0.5
"""Share of a trace's events that must be known for a statement on its rank."""
_NAME = 200
"""Maximum number of characters of an event's name."""
_FRAMES = ("Trace", "python_function")
"""Kinds of events that say nothing of a rank's time; frames of Python are most of a trace."""
_WRITTEN = re.compile(
    r"(?:cpu|gpu|cuda|hip|xpu|mtia|hpu|glow|privateuse1)_[a-z_]{1,40}"
    r"|kernel|user_annotation|overhead|python_function|collective_comm|ac2g|fwdbwd|async|Trace"
)
"""Kinds of events that torch.profiler writes."""
_KINDS = frozenset(("cpu_op", "kernel", "gpu_memcpy", "gpu_memset", "user_annotation", "gpu_user_annotation"))
_NAMES = (
    "ProfilerStep#", "Optimizer.step#", "enumerate(DataLoader)", "autograd::engine::evaluate_function", "c10d::",
    "_c10d_functional::", "record_param_comms", "nccl", "gloo:", "mpi:", "ucc:", "rccl", "xccl", "hccl",
)  # fmt: skip
"""Kinds and names of events by which time is accounted for; of others, only the first and the last are kept."""
_GZIP = b"\x1f\x8b"
_RANK = re.compile(r"rank[-_.]?(\d{1,6})(?!\d)", re.IGNORECASE)
_YEARS = 1e17
"""Microseconds above which a timestamp is rejected."""


class TraceEvent(msgspec.Struct, frozen=True):
    """Complete event; times in microseconds."""

    name: str = ""
    ts: float = -1.0
    dur: float = 0.0
    cat: str = ""
    pid: int | str = 0
    tid: int | str = 0


class _Head(msgspec.Struct, frozen=True):
    """Beginning of the file, up to the events."""

    distributedInfo: Any = None  # noqa: N815 - name in the file format


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Complete events of one rank, in order of time."""

    rank: int
    file: str
    events: tuple[TraceEvent, ...]
    notes: tuple[str, ...] = ()
    known: int = 1
    """Number of events of kinds that torch.profiler writes."""
    seen: int = 1
    """Number of all events with a duration."""
    whole: bool = True
    """All of it was read."""

    @property
    def is_understood(self) -> bool:
        """True if enough is known of the trace to judge its rank."""
        return bool(self.events) and self.known >= ENOUGH * self.seen


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
    read = [_one(path, len(files)) for path in files]
    named = [rank for rank, _ in read]
    unique = None not in named and len(set(named)) == len(named)
    traces = []
    for place, (path, (rank, trace)) in enumerate(zip(files, read, strict=True)):
        number = rank if unique and rank is not None else place
        note = () if unique else (f"{path.name} does not say its rank, or another says the same: taken as {number}",)
        traces.append(msgspec.structs.replace(trace, rank=number, notes=(*trace.notes, *note)))
    return sorted(traces, key=lambda t: t.rank)


def _one(path: Path, files: int) -> tuple[int | None, Trace]:
    notes: list[str] = []
    events: list[TraceEvent] = []
    texts: dict[str, str] = {}
    written: set[str] = set()
    set_field = msgspec.structs.force_setattr
    first = last = None
    read = seen = known = 0
    heads: list[bytes] = []
    for part in _parts(path, heads, _BYTES // files):
        if part is None:
            notes.append(f"{path.name} is cut; what is complete was read")
            break
        read += len(part)
        for event in part:
            if not (0 <= event.ts < _YEARS and 0 < event.dur < _YEARS):
                continue
            kind, name = event.cat, event.name
            seen += 1
            if kept := kind in _KINDS or name.startswith(_NAMES):
                known += 1
            elif kind in written or _WRITTEN.fullmatch(kind):
                known += 1
                written.add(kind)
                if kind in _FRAMES:
                    continue
            if kept:
                set_field(event, "name", texts.setdefault(name[:_NAME], name[:_NAME]))  # most are equal
                set_field(event, "cat", texts.setdefault(kind, kind))
                events.append(event)
            first = event if first is None or event.ts < first.ts else first
            last = event if last is None or event.ts + event.dur > last.ts + last.dur else last
        if len(events) > _EVENTS // files or read > _SEEN // files or (read > _FOREIGN and not known):
            notes.append(f"{path.name}: only its first {read:,} events were read; record fewer steps")
            break
    info = _rank_info(heads[0])
    rank = info.get("rank") if isinstance(info, dict) else None
    if not (type(rank) is int and 0 <= rank < 1 << 18):
        match = _RANK.search(path.name)
        rank = int(match[1]) if match else None
    if not seen:
        raise UsageError(f"slow {path}: it has no event with a duration; is it a trace of torch.profiler?")
    outer = [e for e in (first, last) if e is not None and not _is_kept(e)] if events else []
    events = sorted([*events, *outer], key=lambda e: e.ts)
    found = Trace(
        rank=0, file=str(path), events=tuple(events), notes=tuple(notes), known=known, seen=seen, whole=not notes
    )
    return rank, found


def _is_kept(event: TraceEvent) -> bool:
    return event.cat in _KINDS or event.name.startswith(_NAMES)


def _rank_info(head: bytes) -> Any:
    try:
        return msgspec.json.decode(head.rstrip().rstrip(b",") + b"}", type=_Head).distributedInfo
    except (ValueError, RecursionError):
        return None


_one_event = msgspec.json.Decoder(TraceEvent)
_many_events = msgspec.json.Decoder(list[TraceEvent])
_many_parts = msgspec.json.Decoder(list[msgspec.Raw])


def _events(part: bytes) -> list[TraceEvent] | None:
    """Return the events in a list of them; None if it is not one."""
    try:
        return _many_events.decode(part)
    except (ValueError, RecursionError):  # others are among them
        pass
    try:
        return [event for raw in _many_parts.decode(part) if (event := _event(raw)) is not None]
    except (ValueError, RecursionError):
        return None


def _event(raw: msgspec.Raw) -> TraceEvent | None:
    try:
        return _one_event.decode(raw)
    except (ValueError, RecursionError):
        return None


def _parts(path: Path, heads: list[bytes], left: int) -> Iterator[list[TraceEvent] | None]:
    """Yield lists of events, then None if the file is cut, or longer than `left`.

    What stands before the events is added to `heads`.

    Raises:
        UsageError: it is not a trace.

    """
    pending = b""
    begun = False
    with _open_trace(path) as file:
        while data := _read(file, path):
            left -= len(data)
            if begun and left < 0:
                break
            pending += data
            if not begun and pending.lstrip()[:1] == b"[":  # the form of Chrome's own traces
                begun, pending = True, pending.lstrip()[1:]
                heads.append(b"{")
            if not begun:
                head, key, rest = pending.partition(b'"traceEvents"')
                if not key and len(pending) > _HEAD:
                    break
                if not key or b"[" not in rest:
                    continue
                begun = True
                heads.append(head)
                pending = rest.partition(b"[")[2]
            try:
                part, pending = _complete(pending)
            except OSError as error:
                raise UsageError(f"slow {path}: {error.strerror}") from None
            if part is not None:
                yield part
            elif len(pending) > _LONGEST:
                raise UsageError(f"slow {path}: is not a trace: an event of more than {_LONGEST >> 20} MiB")
    if not begun:
        raise UsageError(f"slow {path}: is not a trace: it is not JSON with traceEvents")
    yield from _last(pending)


def _complete(text: bytes) -> tuple[list[TraceEvent] | None, bytes]:
    """Return the complete events of a text, and the rest."""
    begin = max(0, len(text) - _CHUNK)
    for found in list(_BETWEEN.finditer(text, begin))[: -_TRIES - 1 : -1]:
        events = _events(b"[" + text[: found.start() + 1] + b"]")
        if events is not None:
            return events, text[found.end() - 1 :]
        budget.current().read_again(found.start())
    return None, text


def _last(text: bytes) -> Iterator[list[TraceEvent] | None]:
    """Yield the events at the end of a file, and None after them if the file is cut."""
    for mark, tail in ((b"]", b""), (b"}", b"]")):
        end = len(text)
        for _ in range(_TRIES):
            end = text.rfind(mark, 0, end)
            if end < 0:
                break
            events = _events(b"[" + text[: end + 1] + tail)
            if events is not None:
                yield events
                if tail:
                    yield None
                return
    yield None


@contextmanager
def _open_trace(path: Path) -> Iterator[Any]:
    """Open a trace, unpacked as it is read; raises UsageError."""
    try:
        file = BufferedReader(safe_open.log(path))
    except OSError as error:
        raise UsageError(f"slow {path}: can't be read: {error.strerror}") from None
    with file:
        if file.peek(2)[:2] != _GZIP:
            yield file
        else:
            size = path.stat().st_size
            with BufferedReader(UnpackedStream(GunzippedStream(file), size), _CHUNK) as unpacked:
                yield unpacked


def _read(file: Any, path: Path) -> bytes:
    try:
        return bytes(file.read(_CHUNK))
    except zlib.error as error:
        raise UsageError(f"slow {path}: damaged: {error}") from None
    except OSError as error:
        raise UsageError(f"slow {path}: {error.strerror or error}; record fewer steps") from None
