"""Assigns reports of the machine to ranks: by process id, by PCI address, else by host if it has one rank."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dtdebug.recorded.job_logs.assign_ranks import short
from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Verdict, spell

_ROLES = {"end": 0, "root": 0, "cascade": 1, "note": 2}
_WORD = re.compile(r"[._-]")
_WORDS = 12
_SAYS = ("The machine below {who} failed: {what}.", "The kernel reports the program of {who}: {what}.")
_TOGETHER = 30.0
"""Maximum seconds between a report and the last line of the rank that it ended."""
_AROUND = 900.0
"""Seconds before the ranks' own messages in which a report is relevant to them; timeouts are long."""


def assign_ranks(events: Iterable[Event], ranks: Mapping[int, Stream]) -> tuple[Event, ...]:
    """Return the reports, each once, with the rank if it is known; roots first, then by time."""
    hosts: dict[str, list[Stream]] = defaultdict(list)
    for stream in ranks.values():
        hosts[short(stream.host)].append(stream)
    once: dict[tuple[object, ...], Event] = {}
    for event in events:
        once.setdefault((event.code, event.host, event.pci, event.pid, event.rank), event)
    ends = sorted(s.last for s in ranks.values() if s.last is not None)
    middle = ends[len(ends) // 2] if ends else 0.0
    found = [_assign_rank(_resolve_host(event, hosts), hosts, middle) for event in once.values()]
    return tuple(sorted(found, key=lambda e: (_ROLES[e.role], e.time is None, e.time or 0.0)))


def _resolve_host(event: Event, hosts: Mapping[str, list[Stream]]) -> Event:
    """Set the host from the path of the machine's log, if its lines name no host of the job."""
    if event.host and (short(event.host) in hosts or ("" in hosts and len(hosts) == 1)):
        return event
    parts = {part for piece in event.file.lower().split("/") for part in _parts(piece)}
    known = {name for name in hosts if name and name in parts}
    return msgspec.structs.replace(event, host=hosts[min(known)][0].host) if len(known) == 1 else event


def _parts(piece: str) -> Iterable[str]:
    """Yield all runs of words between separators in a part of a path; any of them may be a host name."""
    cuts = [m.span() for m in _WORD.finditer(piece[:200])][:_WORDS]
    begins, ends = (0, *(end for _, end in cuts)), (*(begin for begin, _ in cuts), len(piece))
    return (piece[a:b] for a in begins for b in ends if a < b)


def _assign_rank(event: Event, hosts: Mapping[str, list[Stream]], middle: float) -> Event:
    """Set the rank: by process, by device, as the only one on the host or the only one there that stopped then."""
    if event.rank is not None:
        return event
    here = hosts.get(short(event.host), []) if event.host else []
    if not here and len(hosts) == 1 and (not event.host or "" in hosts):  # one of the two logs does not name a host
        here = next(iter(hosts.values()))
    unknown = hosts.get("", [])
    at = event.time
    stopped = [
        s
        for s in (*here, *(unknown if here is not unknown else ()))
        if at is not None and s.last is not None and abs(s.last - at) <= _TOGETHER and middle - s.last > _TOGETHER
    ]
    everywhere = [s for rows in hosts.values() for s in rows] if not event.host else here
    for mine in (
        [s for s in everywhere if event.pid and s.pid == event.pid and event.pci in ("", s.pci)],
        [s for s in here if event.pid and s.pid == event.pid],
        [s for s in here if event.pci and s.pci == event.pci],
        here if len(here) == 1 and not unknown else [],
        stopped if event.role == "root" and len(stopped) == 1 else [],
    ):
        if len({s.rank for s in mine}) == 1:
            return msgspec.structs.replace(event, rank=mine[0].rank)
    return event


def of_culprits(events: Sequence[Event], verdict: Verdict | None, ranks: Mapping[int, Stream]) -> tuple[Event, ...]:
    """Assign root reports of about that time to a culprit that is the only one on its host."""
    hosts: dict[str, list[int]] = defaultdict(list)
    for rank in verdict.culprits if verdict is not None else ():
        if rank in ranks and ranks[rank].host:
            hosts[short(ranks[rank].host)].append(rank)

    def of(event: Event) -> Event:
        mine = hosts.get(short(event.host), []) if event.host and event.rank is None and event.role == "root" else []
        if len(mine) != 1:
            return event
        last = ranks[mine[0]].last
        far = event.time is not None and last is not None and not -_TOGETHER <= event.time - last <= _AROUND
        return event if far else msgspec.structs.replace(event, rank=mine[0])

    return tuple(of(event) for event in events)


def machine_verdict(events: Sequence[Event], ranks: Mapping[int, Stream]) -> Verdict | None:
    """Return a verdict on the ranks of the host that failed first, if no rank reports a failure of its own."""
    roots = [e for e in events if e.role == "root" and e.rank is not None]
    starts = [s.first for s in ranks.values() if s.first is not None]
    if starts:
        first = min(starts)
        roots = [e for e in roots if e.time is None or first - _AROUND <= e.time <= first + 60]
    if not roots or not any(s.kind for s in ranks.values()):
        return None
    begin = roots[0]
    mine = [e for e in roots if e.host == begin.host]
    culprits = tuple(sorted({e.rank for e in mine if e.rank is not None}))
    claims = tuple(
        Claim(
            what="system",
            ranks=() if e.rank is None else (e.rank,),
            words=f"{e.code}: {e.means}{f', PCI {e.pci}' if e.pci else ''} on {e.host or 'its host'}",
            record=Record(source="kernel", path=e.file, line=e.line, rank=e.rank, words=e.text[:200]),
        )
        for e in mine[:8]
    )
    who = spell(culprits, 8)
    return Verdict(
        kind="dead" if begin.owner in ("device", "host") else "not_understood",
        culprits=culprits,
        waiting=tuple(sorted(set(ranks) - set(culprits))),
        confidence=0.7,
        summary=_SAYS[begin.owner == "application"].format(
            who=who, what=f"{begin.code} ({begin.means}) on {begin.host or 'its host'}"
        ),
        claims=claims,
        evidence=texts(claims),
    )
