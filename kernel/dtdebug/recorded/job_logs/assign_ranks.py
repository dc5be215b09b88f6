"""Resolves the rank of each stream from all logs together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from dtdebug.recorded.job_logs.part import LaunchedNode, Stream, TellingLine
from dtdebug.recorded.job_logs.rank_from_path import counts
from dtdebug_taxonomy.model.ranks import MOST_RANKS

_OUT_ERR = re.compile(r"(?i)(?:std)?(?:out|err)(?:\.(?:log|txt))?$")
_POD = re.compile(r"(?P<stem>[A-Za-z][\w.-]{0,100})-(?P<n>\d{1,6})")
_PODS, _PAIR = 3, 2
"""Minimum number of pods to compare their numbers."""


def resolve_ranks(streams: Sequence[Stream], nodes: Sequence[LaunchedNode] = ()) -> list[Stream]:
    """Set ranks where only the local rank is known: from other logs of the node, or if there is one node."""
    streams = _rank_pods(_twins(streams))
    nameless = [s for s in streams if s.rank is None and s.local is not None]
    if not nameless:
        return _processes(list(streams))
    bases = _bases(streams) | _reported_bases(nameless, nodes)
    here = {_node(s) for s in streams if s.local is not None}
    if len(here) == 1 and not bases and _whole(nameless, max((s.world for s in streams), default=0)):
        bases = dict.fromkeys(here, 0)
    bases |= _numbered_bases(nameless) if not bases else {}
    taken = {s.rank: (_node(s), s.local) for s in streams if s.rank is not None and s.local is not None}
    found = []
    for s in streams:
        base = bases.get(_node(s)) if s.rank is None and s.local is not None else None
        rank = base + s.local if base is not None and s.local is not None else None
        free = rank is not None and taken.get(rank, (_node(s), s.local)) == (_node(s), s.local)
        found.append(msgspec.structs.replace(s, rank=rank) if free else s)
    return found


def _processes(streams: list[Stream]) -> list[Stream]:
    """Set the rank that other lines of the same process name; a single unknown process gets the single missing rank."""
    ranks = _unique_values((f"{s.host} {s.pid}", s.rank) for s in streams if s.rank is not None and s.pid)
    unknown = {f"{s.host} {s.pid}" for s in streams if s.rank is None and s.pid and s.local is None} - ranks.keys()
    known = {s.rank for s in streams if s.rank is not None}
    size = max(max(known, default=-1) + 1, *(s.world for s in streams), 0)
    missing = set(range(min(size, MOST_RANKS))) - known
    if len(unknown) == 1 and len(missing) == 1:
        ranks[min(unknown)] = min(missing)
    if not ranks:
        return streams
    return [
        msgspec.structs.replace(s, rank=ranks.get(f"{s.host} {s.pid}"))
        if s.rank is None and s.pid and s.local is None
        else s
        for s in streams
    ]


def _twins(streams: Sequence[Stream]) -> list[Stream]:
    """Set the rank of one of two files that differ only in `out` and `err` from the other."""
    ranks: dict[str, set[int]] = defaultdict(set)
    often = Counter(s.file for s in streams)
    for s in streams:
        if s.rank is not None and often[s.file] == 1:
            ranks[twin(s.file)].add(s.rank)
    own = {name: min(known) for name, known in ranks.items() if len(known) == 1}
    return [
        msgspec.structs.replace(s, rank=own.get(twin(s.file)))
        if s.rank is None and not s.pid and often[s.file] == 1
        else s
        for s in streams
    ]


def twin(file: str) -> str:
    """Return a key shared by the two files of a process that differ only in `out` and `err`."""
    return _OUT_ERR.sub("", file)


def _whole(streams: Sequence[Stream], world: int) -> bool:
    """True if the local ranks are all of the job's: they start at 0, and the job has no more ranks."""
    return min(s.local or 0 for s in streams) == 0 and world <= max(s.local or 0 for s in streams) + 1


def _numbered_bases(streams: Sequence[Stream]) -> dict[str, int]:
    """Return node -> rank of its first process if the nodes count from 0 and each has the same local ranks."""
    locals_: dict[str, set[int]] = defaultdict(set)
    for s in streams:
        if s.local is not None:
            locals_[_node(s)].add(s.local)
    names = {node: found for node in locals_ if (found := _POD.fullmatch(node))}
    size = len(next(iter(locals_.values())))
    if (
        len(names) < len(locals_)
        or len({found["stem"] for found in names.values()}) > 1
        or {int(found["n"]) for found in names.values()} != {*range(len(names))}
        or any(ranks != {*range(size)} for ranks in locals_.values())
    ):
        return {}
    return {node: int(found["n"]) * size for node, found in names.items()}


def _reported_bases(streams: Sequence[Stream], nodes: Sequence[LaunchedNode]) -> dict[str, int]:
    """Return node -> rank of its first process from the launcher's report: of the same log, else of the same host."""
    by_file, by_host = (
        _unique_values((n.file, n.base) for n in nodes),
        _unique_values((short(n.host), n.base) for n in nodes if n.host),
    )
    found: dict[str, int] = {}
    for s in streams:
        base = by_host.get(short(s.host)) if s.host else None
        base = by_file.get(s.file) if base is None and (not s.host or not by_host) else base
        if base is not None:
            found[_node(s)] = base
    return found


def _unique_values(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, set[int]] = defaultdict(set)
    for key, base in rows:
        found[key].add(base)
    return {key: min(bases) for key, bases in found.items() if len(bases) == 1}


def short(host: str) -> str:
    """Return the host in lower case without its domain, since logs differ in naming it."""
    return host if host.replace(".", "").isdigit() else host.split(".", maxsplit=1)[0].lower()


def _rank_pods(streams: Sequence[Stream]) -> list[Stream]:
    """Set ranks from the numbers of pods with one process each, if no rank is known and the numbers start at 0.

    Kubeflow's master is rank 0, its workers count from 1.
    """
    if any(s.rank is not None or s.local is not None for s in streams):
        return list(streams)
    numbers = {n: found for n, s in enumerate(streams) if (found := _POD.fullmatch(s.host))}
    stems = {found["stem"] for found in numbers.values()}
    if {stem.rpartition("-")[2] for stem in stems} == {"master", "worker"} and len(stems) == _PAIR:
        ranks = {n: int(found["n"]) + found["stem"].endswith("worker") for n, found in numbers.items()}
    elif len(stems) == 1:
        ranks = {n: int(found["n"]) for n, found in numbers.items()}
    else:
        return list(streams)
    if len(ranks) < _PODS or not counts(sorted(ranks.values())):
        return list(streams)
    return [msgspec.structs.replace(s, rank=ranks.get(n)) for n, s in enumerate(streams)]


def _bases(streams: Sequence[Stream]) -> dict[str, int]:
    """Return node -> rank of its first process, if its logs agree; ranks of a node are consecutive."""
    found: dict[str, set[int]] = defaultdict(set)
    for s in streams:
        if s.rank is not None and s.local is not None:
            found[_node(s)].add(s.rank - s.local)
    return {node: min(bases) for node, bases in found.items() if len(bases) == 1 and min(bases) >= 0}


def _node(s: Stream) -> str:
    """Return a key of the node: the folder of a launcher's logs, else the host."""
    before, found, _ = s.file.rpartition("attempt_")
    return before if found else s.host or s.file.rpartition("/")[0]


def count(streams: Sequence[Stream]) -> int:
    """Count the processes that print: by rank, else by node and local rank; if nothing is known of any, count logs."""
    ranks = {s.rank for s in streams if s.rank is not None}
    known = {(_node(s), s.local) for s in streams if s.rank is not None}
    others = {(_node(s), s.local) for s in streams if s.rank is None and s.local is not None} - known
    named, processes = len(ranks) + len(others), len({(s.host, s.pid) for s in streams if s.pid})
    return processes if named * 2 < processes else named or len({(twin(s.file), s.host, s.pid) for s in streams})


def by_rank(streams: Sequence[Stream]) -> dict[int, Stream]:
    """Return rank -> its merged streams: standard output and standard error are two files of one rank."""
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
            ending=later.ending or earlier.ending,
            told=later.told or earlier.told,
            progress=later.progress or _progress_beside(earlier, later.file),
            marks=later.marks or earlier.marks,
            paces=s.paces or other.paces,
            first_paces=s.first_paces or other.first_paces,
            stall=s.stall or other.stall,
        )
    return found


def _progress_beside(s: Stream, file: str) -> TellingLine | None:
    """Return the last step that a rank printed; of another file its time counts, and its line means nothing."""
    if s.progress is None or s.file == file:
        return s.progress
    return msgspec.structs.replace(s.progress, line=0)
