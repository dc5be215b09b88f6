"""Format of a rank's recording: lines of JSON, each readable without those that follow.

rank-R.A.head.jsonl   of rank R, its A-th start: a header, then checkpoints `[number, digest of all records so far]`
rank-R.A.S.jsonl      segment S: definitions `{"k": key, ...}` and records `[number, key, [fingerprints]]`; if data
                      are kept also `["d", number, [[offset, bytes], ...]]`; late fingerprints from a GPU are
                      `["p", number, [fingerprints]]`
rank-R.A.data         bytes that this rank received from collectives
rank-R.A.cost.json    end of the recording (`End`); blank until then, to reserve space on a full disk

The first segment and the last ones are kept, so a long run takes bounded space; checkpoints show how far two runs agree
if their records are gone. A file that ends within a line is read up to there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.storage import state_dir

VERSION = 1
SEGMENT, KEPT = 16 << 20, 4
"""Bytes of a segment, and maximum number of latest segments kept."""
_MOST_RECORDS, _MOST_KEYS, _MOST_TENSORS = 4 << 20, 1 << 16, 1 << 16
_LINE = 1 << 20
_MOST_FILES, _MOST_RANKS = 1 << 14, 1 << 20
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]


class RecordingHeader(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Header of a rank's recording."""

    v: int
    rank: int
    world: int
    command: tuple[str, ...] = ()
    """Command of the rank's own process, without secrets."""
    folder: str = ""
    """Working directory."""
    environment: dict[str, str] = {}
    versions: dict[str, str] = {}
    host: str = ""
    started: float = 0.0
    seed: int | None = None
    """Seed of torch's default generator after the import of torch; it differs in each process."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """Properties shared by similar collectives."""

    k: int
    op: str
    group: tuple[int, ...]
    """Global ranks of the group."""
    ordinal: int = 0
    """Index among the groups with these ranks."""
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    peer: int | None = None
    """Global rank at the other end of a message; the root of a broadcast."""
    tag: int = 0
    waits: bool = False
    """The program waits for it immediately."""
    thread: str = ""
    """Name of the program's thread that made the call; empty for the main thread and those of torch."""

    def same_call(self, other: Key) -> bool:
        """True for the same operator in the same group."""
        mine = (self.op, self.group, self.ordinal, self.peer, self.tag)
        return mine == (other.op, other.group, other.ordinal, other.peer, other.tag)


class RecordingEnd(msgspec.Struct, frozen=True, kw_only=True):
    """End and cost of a rank's recording."""

    collectives: int = 0
    bytes: int = 0
    """Bytes of all inputs."""
    seconds: float = 0.0
    data: int = 0
    data_to: int = 0
    """Number of the last collective whose results were kept."""
    full: bool = False
    stopped: str = ""
    """Reason why it ended before the program did."""


class RecordedCollective(msgspec.Struct, frozen=True):
    """One recorded collective."""

    number: int
    key: Key
    prints: tuple[int | None, ...] = ()
    data: tuple[tuple[int, int], ...] | None = None
    """(offset, bytes) of its results; None if they were not kept."""


class Course(msgspec.Struct, kw_only=True):
    """Recording of a rank's collectives."""

    header: RecordingHeader
    records: list[RecordedCollective]
    checkpoints: dict[int, int]
    data: Path
    notes: list[str]
    end: RecordingEnd | None = None
    """None for a process that was killed, or that skipped Python's exit handlers."""
    damaged: bool = False

    @property
    def broken_off(self) -> bool:
        """True if the program may have called more than was recorded."""
        return self.damaged or bool(self.end and self.end.stopped)


def by_thread(records: Sequence[RecordedCollective]) -> dict[str, list[RecordedCollective]]:
    """Return the records of each thread in its own order; the order between threads varies with each run."""
    found: dict[str, list[RecordedCollective]] = {}
    for record in records:
        found.setdefault(record.key.thread, []).append(record)
    return found


_key = msgspec.json.Decoder(Key)
_record = msgspec.json.Decoder(tuple[int, int, tuple[int | None, ...]])
_late = msgspec.json.Decoder(tuple[str, int, tuple[int | None, ...]])
_data = msgspec.json.Decoder(tuple[str, int, tuple[tuple[_Bytes, _Bytes], ...]])


def ranks(folder: Path) -> dict[int, str]:
    """Return the ranks of a recording, each with its last start.

    Raises:
        UsageError: the folder is not a recording, or can't be read.

    """
    found: dict[int, int] = {}
    try:
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    except OSError as error:
        raise UsageError(f"{folder}: can't be read: {error.strerror}") from None
    for name in [name for name in names if name.startswith("rank-") and name.endswith(".head.jsonl")][:_MOST_FILES]:
        parts = name.split(".")
        rank = parts[0].removeprefix("rank-")
        if len(parts) == 4 and _small(rank) and _small(parts[1]):
            found[int(rank)] = max(found.get(int(rank), 0), int(parts[1]))
    if not found:
        raise UsageError(f"{folder}: no recording; `dtdebug run --record {folder} -- COMMAND` makes one")
    return {rank: f"rank-{rank}.{start}" for rank, start in sorted(found.items())}


def _small(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 8


def load(folder: Path, name: str) -> Course:
    """Return the recording of a rank.

    Raises:
        UsageError: the version differs, or the header can't be read or names another rank.

    """
    head = folder / f"{name}.head.jsonl"
    lines = _lines(head)
    try:
        header = msgspec.json.decode(next(lines, b""), type=RecordingHeader)
    except ValueError:
        raise UsageError(f"{head}: no header of a recording; the rank ended before its first collective?") from None
    if header.v != VERSION:
        raise UsageError(f"{head}: version {header.v}; this dtdebug reads version {VERSION}")
    if not 0 <= header.rank < header.world <= _MOST_RANKS:
        raise UsageError(f"{head}: rank {header.rank} of {header.world} can't be")
    if name.split(".", maxsplit=1)[0] != f"rank-{header.rank}":
        raise UsageError(f"{head}: is the header of rank {header.rank}, not of this one")
    if header.seed is not None and not -(1 << 63) <= header.seed < 1 << 64:
        raise UsageError(f"{head}: no generator has the seed {header.seed}")
    checkpoints: dict[int, int] = {}
    for line in lines:
        try:
            at, digest = msgspec.json.decode(line, type=tuple[int, int])
        except ValueError:
            break
        checkpoints[at] = digest
    course = Course(header=header, records=[], checkpoints=checkpoints, data=folder / f"{name}.data", notes=list[str]())
    course.end = read_end(folder / f"{name}.cost.json")
    if course.end is not None and course.end.stopped:
        why = one_line(course.end.stopped, 200)
        course.notes.append(f"{name}: recorded up to collective #{course.end.collectives}, not to the end: {why}")
    segments = sorted(
        (int(part), path) for path in folder.glob(f"{name}.*.jsonl") if _small(part := path.name.split(".")[2])
    )
    for _, path in segments[: KEPT + 1]:
        _segment(path, course)
    last = course.records[-1].number if course.records else 0
    if course.end is not None and last < course.end.collectives:
        course.damaged = True
        course.notes.append(f"{name}: ends with collective #{last}; at least {course.end.collectives} were recorded")
    return course


def read_end(path: Path) -> RecordingEnd | None:
    """Return the end of a recording, or None if unknown."""
    try:
        return msgspec.json.decode(state_dir.read_start(path, 1 << 16), type=RecordingEnd)
    except (OSError, ValueError):
        return None


def _segment(path: Path, course: Course) -> None:
    keys: dict[int, Key] = {}
    places: dict[int, int] = {}
    for number, line in enumerate(_lines(path), 1):
        try:
            if line.startswith(b"{"):
                key = _key.decode(line)
                if len(keys) < _MOST_KEYS and len(key.shapes) < _MOST_TENSORS:
                    keys[key.k] = msgspec.structs.replace(key, file=clean(key.file)[:1000], op=clean(key.op)[:100])
            elif line.startswith(b'["d"'):
                _, at, data = _data.decode(line)
                if at in places:
                    course.records[places[at]] = msgspec.structs.replace(course.records[places[at]], data=data)
            elif line.startswith(b'["p"'):
                _, at, prints = _late.decode(line)
                if at in places:
                    course.records[places[at]] = msgspec.structs.replace(course.records[places[at]], prints=prints)
            elif len(course.records) < _MOST_RECORDS:
                at, k, prints = _record.decode(line)
                course.records.append(RecordedCollective(at, keys[k], prints))
                places[at] = len(course.records) - 1
        except (ValueError, KeyError):
            course.notes.append(f"{path.name}:{number}: can't be read; what follows in this file is left out")
            course.damaged = True
            return


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file, of bounded length."""
    try:
        data = state_dir.read_start(path, 4 * SEGMENT)
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    for line in data.split(b"\n")[:-1]:  # an unterminated line was not finished
        if len(line) <= _LINE:
            yield line
