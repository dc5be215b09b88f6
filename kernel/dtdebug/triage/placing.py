"""Which rank a stream is of, as all logs together show, and how far the clocks of the hosts differ."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

import msgspec

from dtdebug.triage.part import Part, Stream, Told

_LEAST = 1.0
"""Seconds by which a clock has to differ to be set right."""
_AGREE = 2.0
"""Seconds within which a host's own steps must agree on how far its clock is off."""
_OUT_ERR = re.compile(r"(?i)(?:std)?(?:out|err)(?:\.(?:log|txt))?$")
_HOSTS = 3
"""Hosts from which on one's clock can be compared with the others'."""


def placed(streams: Sequence[Stream]) -> list[Stream]:
    """With the rank where only the local rank was known: as other logs of its node show, or where there is one node."""
    streams = _twins(streams)
    nameless = [s for s in streams if s.rank is None and s.local is not None]
    if not nameless:
        return list(streams)
    bases = _bases(streams)
    nodes = {_node(s) for s in streams if s.local is not None}
    if len(nodes) == 1 and not bases and _whole(nameless):
        bases = dict.fromkeys(nodes, 0)
    taken = {s.rank: (_node(s), s.local) for s in streams if s.rank is not None and s.local is not None}
    found = []
    for s in streams:
        base = bases.get(_node(s)) if s.rank is None and s.local is not None else None
        rank = base + s.local if base is not None and s.local is not None else None
        free = rank is not None and taken.get(rank, (_node(s), s.local)) == (_node(s), s.local)
        found.append(msgspec.structs.replace(s, rank=rank) if free else s)
    return found


def _twins(streams: Sequence[Stream]) -> list[Stream]:
    """With the rank of the other of two files that are named alike but for `out` and `err`."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for s in streams:
        if s.rank is not None:
            ranks[_OUT_ERR.sub("", s.file)].add(s.rank)
    own = {name: min(known) for name, known in ranks.items() if len(known) == 1}
    return [
        msgspec.structs.replace(s, rank=own.get(_OUT_ERR.sub("", s.file))) if s.rank is None and not s.pid else s
        for s in streams
    ]


def _whole(streams: Sequence[Stream]) -> bool:
    """The local ranks are those of a node: they count from 0 on."""
    return min(s.local or 0 for s in streams) == 0


def _bases(streams: Sequence[Stream]) -> dict[str, int]:
    """Node -> rank of its first process, where its logs agree: ranks of a node follow each other."""
    found: dict[str, set[int]] = defaultdict(set)
    for s in streams:
        if s.rank is not None and s.local is not None:
            found[_node(s)].add(s.rank - s.local)
    return {node: min(bases) for node, bases in found.items() if len(bases) == 1 and min(bases) >= 0}


def _node(s: Stream) -> str:
    """What tells the nodes apart: the folder of a launcher's logs, else the host."""
    before, found, _ = s.file.rpartition("attempt_")
    return before if found else s.host or s.file.rpartition("/")[0]


def by_rank(streams: Sequence[Stream]) -> dict[int, Stream]:
    """Rank -> its streams as one: standard output and standard error are two files of one rank."""
    found: dict[int, Stream] = {}
    for s in streams:
        if s.rank is None:
            continue
        other = found.get(s.rank)
        if other is None:
            found[s.rank] = s
            continue
        later, earlier = (s, other) if (s.last or 0.0) >= (other.last or 0.0) else (other, s)
        found[s.rank] = msgspec.structs.replace(
            later,
            host=s.host or other.host,
            pid=s.pid or other.pid,
            pci=s.pci or other.pci,
            kind=f"{other.kind}{s.kind}",
            began=min((t for t in (s.began, other.began) if t is not None), default=None),
            first=min((t for t in (s.first, other.first) if t is not None), default=None),
            step=max((n for n in (s.step, other.step) if n is not None), default=None),
            end=later.end or earlier.end,
            told=later.told or earlier.told,
            paces=s.paces or other.paces,
        )
    return found


def clocks(streams: Sequence[Stream]) -> dict[str, float]:
    """Host -> seconds that its clock is ahead of the others', by the first steps: all ranks print them together.

    Hosts whose own steps disagree, and those that print none, are left out: nothing is known of their clocks.
    """
    by_step: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for s in streams:
        for step, time in s.marks:
            by_step[step][clock(s)].append(time)
    off: dict[str, list[float]] = defaultdict(list)
    for times in by_step.values():
        own = {who: median(values) for who, values in times.items()}
        if len(own) < _HOSTS:
            continue
        middle = median(own.values())
        for who, time in own.items():
            off[who].append(time - middle)
    return {
        who: round(median(rows), 3)
        for who, rows in off.items()
        if abs(median(rows)) >= _LEAST and max(rows) - min(rows) <= _AGREE
    }


def clock(s: Stream) -> str:
    """Whose clock a stream has."""
    return s.host or s.file


def in_time(part: Part, off: dict[str, float]) -> Part:
    """The part with all times by one clock."""
    if not off:
        return part
    short = {name.split(".")[0]: seconds for name, seconds in off.items()}
    return msgspec.structs.replace(
        part,
        streams=[_set(s, off.get(clock(s), 0.0)) for s in part.streams],
        hardware=[
            msgspec.structs.replace(e, time=e.time - short[e.host.split(".")[0]])
            if e.time is not None and e.host.split(".")[0] in short
            else e
            for e in part.hardware
        ],
    )


def _set(s: Stream, ahead: float) -> Stream:
    if not ahead:
        return s
    return msgspec.structs.replace(
        s,
        began=_less(s.began, ahead),
        last=_less(s.last, ahead),
        first=_less(s.first, ahead),
        told=tuple(_moved(t, ahead) for t in s.told),
        progress=_moved(s.progress, ahead) if s.progress is not None else None,
    )


def _moved(told: Told, ahead: float) -> Told:
    return msgspec.structs.replace(told, time=_less(told.time, ahead))


def _less(time: float | None, ahead: float) -> float | None:
    return None if time is None else time - ahead
