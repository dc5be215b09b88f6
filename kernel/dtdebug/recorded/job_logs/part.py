"""Summary of some logs of a job as compact JSON; parts can be merged. The same code makes them on any machine."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dtdebug.recorded.log_files.excerpt import LogError
from dtdebug.storage.budget import LATE
from dtdebug_taxonomy.knowledge.hardware import Event

VERSION = 5
EXAMPLES = 8
"""Maximum number of streams with the same telling lines that keep their text; others keep identity and times."""
TOO_MANY, TOO_SLOW, TOO_LONG = "printers: too many", "printers: too slow", "takes too long, or one read with it"
_STREAMS, _EVENTS, _NOTES = 1 << 18, 1 << 14, 200


class TellingLine(msgspec.Struct, frozen=True, array_like=True):
    """Line that reports a failure."""

    line: int
    text: str
    time: float | None = None
    """Its own time, else that of a line shortly above it."""
    until: float | None = None
    """Latest time at which it was printed: its own, else that of the next line below with a time, or None."""


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """Wait in which the output of a printer ends."""

    says: str
    """Line that says so; empty if the output ends in the line that enters a collective."""
    last: TellingLine
    """Last line above."""
    odd: tuple[TellingLine, ...] = ()
    """Rare lines that say that something was left out or done otherwise."""


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """Step that took far longer than those around it."""

    step: int
    """Step before it."""
    time: float
    seconds: float


class Stream(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Output of one printer in one file."""

    file: str
    rank: int | None = None
    local: int | None = None
    host: str = ""
    attempt: int = 0
    pid: int = 0
    pci: str = ""
    """PCI address of its device, if NCCL prints it."""
    world: int = 0
    """Size of the largest communicator that NCCL prints."""
    began: float | None = None
    """Time of its first line with a time, in seconds since the epoch."""
    last: float | None = None
    """Time of its last line."""
    line: int = 0
    """Number of its last line."""
    step: int | None = None
    """Last step of training that it printed."""
    first: float | None = None
    """Time of its first telling line."""
    kind: str = ""
    """Key shared by streams whose telling lines have the same shapes; empty without telling lines."""
    end: str = ""
    """Key shared by streams that end in telling lines of the same shapes; empty if it does not end in such lines."""
    told: tuple[TellingLine, ...] = ()
    """Its telling lines, and progress after them; empty if enough others of its kind are kept."""
    progress: TellingLine | None = None
    """Its last line with a step number."""
    marks: tuple[tuple[int, float], ...] = ()
    """(step, time) of the first steps that it printed; other ranks print them at the same moment."""
    paces: tuple[float, ...] = ()
    """Durations in seconds of some of its last steps, as printed."""
    first_paces: tuple[float, ...] = ()
    """Durations in seconds of some of its first steps."""
    stall: Gap | None = None
    """Step near its end that stalled."""
    labelled: bool = False
    """The number of a task before its lines is its rank."""
    stops: bool = False
    """Its training stops without a sign of an end."""
    ends: bool = False
    """Its last lines show a sign of an end."""
    standing: Standing | None = None
    """Wait in which it ends."""
    ending: TellingLine | None = None
    """Its last line that reports no failure; None if it has none."""
    begin: int = 0
    """First line of the last run in its file, where earlier ones are above it."""
    done: int = 0
    """Line in which it says that the training was completed."""


class LaunchedNode(msgspec.Struct, frozen=True, array_like=True):
    """Node in a launcher's report, with the rank of its first process."""

    file: str
    host: str
    base: int


class Part(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Content of some logs of a job."""

    v: int = VERSION
    files: int = 0
    size: int = 0
    """Size of the text in bytes."""
    streams: list[Stream] = []
    hardware: list[Event] = []
    unread: list[str] = []
    nodes: list[LaunchedNode] = []
    read: list[str] = []
    """Names of the files read, so that none is counted twice."""
    looked: int = 0
    """Number of lines that were looked at to measure how much is understood."""
    known: int = 0
    """Number of those that are of training."""


def is_cut_short(part: Part) -> bool:
    """True if the time was up, or a bound met, before all printers of the logs were read."""
    return any(note.endswith((TOO_MANY, TOO_SLOW, TOO_LONG, LATE)) for note in part.unread)


def merge(parts: Iterable[Part]) -> Part:
    """Merge several parts; a file in two parts counts once, as in the first of them."""
    whole = Part()
    seen: set[str] = set()
    for part in parts:
        twice = seen.intersection(part.read)
        seen.update(part.read)
        whole.read += [name for name in part.read if name not in twice]
        whole.files += part.files - len(twice)
        whole.size += part.size
        whole.looked += part.looked
        whole.known += part.known
        whole.streams += [s for s in part.streams if s.file not in twice]
        whole.nodes += [n for n in part.nodes if n.file not in twice]
        whole.hardware += [e for e in part.hardware if e.file not in twice]
        whole.unread += [u for u in part.unread if u not in whole.unread]
    whole.streams = _limit_texts(whole.streams)[:_STREAMS]
    whole.nodes = whole.nodes[:_EVENTS]
    whole.hardware = whole.hardware[:_EVENTS]
    whole.unread = whole.unread[:_NOTES]
    return whole


def _limit_texts(streams: list[Stream]) -> list[Stream]:
    """Keep the text of only the earliest streams of each kind."""
    by_kind: dict[str, list[int]] = {}
    for place, stream in enumerate(streams):
        if stream.told:
            by_kind.setdefault(stream.kind, []).append(place)
    bare = {
        place
        for places in by_kind.values()
        if len(places) > EXAMPLES
        for place in sorted(places, key=lambda n: (streams[n].first is None, streams[n].first or 0.0, n))[EXAMPLES:]
    }
    return [msgspec.structs.replace(s, told=()) if n in bare else s for n, s in enumerate(streams)]


def encode(part: Part) -> bytes:
    """Return the part as one line of JSON."""
    return msgspec.json.encode(part)


def decode(data: bytes, name: str) -> Part:
    """Decode the output of `encode`.

    Raises:
        LogError: it is not a part, or of another version.

    """
    try:
        part = msgspec.json.decode(data, type=Part)
    except msgspec.MsgspecError as error:
        raise LogError(f"{name}: is no part of a triage ({error})") from None
    if part.v != VERSION:
        raise LogError(f"{name}: is a part of version {part.v}, this is version {VERSION}; make it anew")
    return part


def is_part(begin: bytes) -> bool:
    """True if a file with this beginning is a part."""
    return (
        begin.startswith((b'{"v":', b'{"files":'))
        and b'"streams":' in begin[:400]
        and b"\n" not in begin[:400].rstrip()
    )
