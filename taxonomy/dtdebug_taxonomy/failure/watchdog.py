"""Which rank differs, from what NCCL's watchdog prints: the collective that each rank waited in, and how far it is.

A watchdog numbers the collectives of its group from 0 or 1 up, in the order in which its rank called them, so that one
number means the same call on every rank. A rank whose last call has a lower number never made the one that the others
wait in. Numbers of two groups are never compared: a rank that is behind in one and waits in another is no end of the
chain, and a name under which two ranks have one place is of several groups. The words are those of
`ProcessGroupNCCL.cpp`:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.claims import Claim, Record, texts
from dtdebug_taxonomy.failure.disagreement import Side, disagreement
from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.failure.missing import called, name
from dtdebug_taxonomy.failure.reading import Reading
from dtdebug_taxonomy.frames import call_site, own_frames
from dtdebug_taxonomy.ranks import Alternative, CallSite, CollectiveRef, Frame, Kind, Verdict, say, spell

_GROUP = r"\[(?:PG (?:ID )?(?P<id>\w{1,20}) (?:(?:PG GUID )?(?P<name>[^\]\s]{1,80}) )?)?Rank (?P<rank>\d{1,6})\] {1,2}"
_CAUGHT = re.compile(
    _GROUP + r"Watchdog caught collective operation timeout: "
    r"WorkNCCL\(SeqNum=(?P<seq>\d{1,18}), OpType=(?P<op>\w{1,40})"
    r"(?:, NumelIn=(?P<into>\d{1,18}), NumelOut=(?P<out>\d{1,18}))?"
    r"(?:[^\n)]{0,100}(?:\(ms\)=\d{1,12})?\) ran for (?P<ran>\d{1,18}) )?"
)
_ENDS = re.compile(_GROUP + "Process group watchdog thread terminated with exception: ")
_STATUS = re.compile(
    _GROUP + r"[^\n]{0,300}?[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18}), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)
_AT = re.compile(r"detected by watchdog at work(?: sequence id)?: (\d{1,18})")
_STACK = "Stack trace of the failed collective:"
_FRAME = re.compile(r"#(\d{1,3}) (\S{1,200}) from ([^\n]{1,500}):(\d{1,9})$")
_EQUAL_SIZES = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"})
"""Collectives whose sizes NCCL wants the same on every rank."""
_DEFAULT = "default_pg"
_SPELLED = frozenset(("0(default_pg)", "(default_pg)", "0"))
"""How releases spell the group of all ranks."""
_SHOWN, _FRAMES, _GROUPS = 8, 60, 4


class Wait(NamedTuple):
    """The collective that timed out on a rank."""

    seq: int
    op: str
    sizes: str
    line: int
    group: str = ""
    """Its name, where others spoke too."""

    def __str__(self) -> str:
        where = f" in group {self.group}" if self.group else ""
        return f"{name(self.op)} #{self.seq}" + (f" of {self.sizes}" if self.sizes else "") + where


class Status(NamedTuple):
    """How far a rank is in its group."""

    enqueued: int
    completed: int
    line: int


class Watched(NamedTuple):
    """What the watchdogs of one group say."""

    waits: Mapping[int, Wait]
    status: Mapping[int, Status]
    sites: Mapping[int, CallSite]


class _Heard:
    """What was printed, by group and rank."""

    def __init__(self) -> None:
        self.waits: dict[str, dict[int, list[Wait]]] = {}
        self.status: dict[str, dict[int, Status]] = {}
        self.groups_of: dict[tuple[int, int], set[str]] = {}
        """Of a rank and a number the groups in which its watchdog names it."""
        self.places: dict[str, dict[str, set[int]]] = {}
        """Group -> place in it -> the ranks of the job that have it; without any names, how long they waited."""
        self.sites: dict[int, CallSite] = {}

    def rank(self, found: re.Match[str], line: Line) -> int | None:
        """The rank of the job; without a prefix the place in the group, which is another number but in that of all."""
        group = _group(found)
        if line.rank is not None:
            self.places.setdefault(group, {}).setdefault(found["rank"], set()).add(line.rank)
            return line.rank
        if not group and (ran := found.groupdict().get("ran")):  # each process has waited for another time
            self.places.setdefault("", {}).setdefault(f"{found['rank']} #{found['seq']}", set()).add(int(ran))
        return int(found["rank"]) if group in ("", _DEFAULT) else None

    def settled(self) -> dict[str, Watched]:
        """The groups whose numbers can be compared: each rank has one wait there, and one place."""
        named: dict[str, dict[int, list[Wait]]] = {}
        for group, rows in self.waits.items():
            for rank, waits in rows.items():
                for wait in waits:
                    told = self.groups_of.get((rank, wait.seq), {""})
                    known = group or (min(told) if len(told) == 1 else "")
                    named.setdefault(known, {}).setdefault(rank, []).append(wait)
        if len(named) == 2 and "" in named:  # some ranks only say which group it was
            (chosen,) = named.keys() - {""}
            for rank, waits in named.pop("").items():
                named[chosen].setdefault(rank, []).extend(waits)
        found: dict[str, Watched] = {}
        for group, rows in named.items():
            apart = any(len({(w.seq, w.op) for w in waits}) > 1 for waits in rows.values())
            shared = any(len(ranks) > 1 for ranks in self.places.get(group, {}).values())
            if apart or shared or (not group and len(named) > 1):
                continue
            label = group if len(named) > 1 else ""
            waits_in = {rank: waits[0]._replace(group=label) for rank, waits in rows.items()}
            found[group] = Watched(waits_in, self.status.get(group, {}), self.sites)
        return found


def read(log: Reading) -> dict[str, Watched]:
    """Group -> what is said of it, where a rank timed out in it and its numbers can be told from other groups'."""
    heard = _Heard()
    for index, line in enumerate(log.lines):
        if "Watchdog caught" in line.body and (found := _CAUGHT.search(line.body)):
            if (rank := heard.rank(found, line)) is not None:
                wait = _wait(found, line.number)
                outer = _ENDS.search(line.body[: found.start()])  # it repeats what it caught, without the group
                heard.waits.setdefault(_group(outer or found), {}).setdefault(rank, []).append(wait)
        elif "ast enqueued" in line.body and (found := _STATUS.search(line.body)):
            if (rank := heard.rank(found, line)) is not None:
                status = Status(int(found["enqueued"]), int(found["completed"]), line.number)
                heard.status.setdefault(_group(found), {}).setdefault(rank, status)
                if at := _AT.search(line.body):
                    heard.groups_of.setdefault((rank, int(at[1])), set()).add(_group(found))
        elif _STACK in line.body and line.rank is not None and (site := _site(log.lines, index)):
            heard.sites.setdefault(line.rank, site)
    return heard.settled()


def _group(found: re.Match[str]) -> str:
    """The name that all members print: PG ID counts on each rank for itself."""
    group = found["name"] or found["id"] or ""
    return _DEFAULT if group in _SPELLED else group


def _wait(found: re.Match[str], line: int) -> Wait:
    known = found["into"] is not None and found["op"] in _EQUAL_SIZES
    into, out = (int(found["into"]), int(found["out"])) if known else (0, 0)
    size = f"{into:,}" if into == out else f"{into:,} -> {out:,}"
    sizes = "" if not known else f"{size} element" if into == out == 1 else f"{size} elements"
    return Wait(int(found["seq"]), found["op"], sizes, line)


def _site(lines: Sequence[Line], header: int) -> CallSite | None:
    """The program's own line in the stack that is printed below the header, the innermost frame first."""
    frames: list[Frame] = []
    for line in lines[header + 1 : header + 1 + _FRAMES]:
        found = _FRAME.match(line.body.strip())
        if found is None or int(found[1]) != len(frames):
            break
        frames.append(Frame(found[3], int(found[4]), found[2]))
    return call_site(lines[header].rank, own_frames(frames[::-1]))


def verdict(log: Reading) -> Verdict | None:
    """The verdict that the watchdogs of all ranks allow; None without them."""
    groups = read(log)
    if len(groups) > 1 or any(w.group for watched in groups.values() for w in watched.waits.values()):
        return _of_several(groups)
    watched = next(iter(groups.values()), None)
    if watched is None:
        return None
    return _behind(watched) or _apart(watched) or _alike(watched, {x.rank for x in log.lines if x.rank is not None})


def _of_several(groups: Mapping[str, Watched]) -> Verdict | None:
    """Each group by its own numbers; a rank that waits in another group itself is held up there."""
    waiting = sorted({rank for watched in groups.values() for rank in watched.waits})
    found = []
    for watched in groups.values():
        elsewhere = {rank for other in groups.values() if other is not watched for rank in other.waits}
        behind = _behind(watched)
        if behind is not None and elsewhere.isdisjoint(behind.waiting if behind.kind == "extra" else behind.culprits):
            found.append(behind)
        elif len({w.seq for w in watched.waits.values()}) == 1 and (apart := _apart(watched)) is not None:
            found.append(apart)
    return found[0] if len({v.culprits for v in found}) == 1 else _listed(groups, waiting)


def _listed(groups: Mapping[str, Watched], waiting: Sequence[int]) -> Verdict:
    """Who waited in which group: all that is known."""
    rows: dict[tuple[str, str], tuple[Wait, list[int], Watched]] = {}
    for group, watched in groups.items():
        for rank, wait in sorted(watched.waits.items()):
            rows.setdefault((group, str(wait)), (wait, [], watched))[1].append(rank)
    said = [f"{spell(ranks, 8)} waited in {wait}{_at(watched, ranks)}" for wait, ranks, watched in rows.values()]
    claims = tuple(claim for watched in groups.values() for claim in _waiting(watched, sorted(watched.waits)))[:_SHOWN]
    first = next(iter(groups.values()))  # the places are those of all
    more = f" and {len(said) - _GROUPS} more" if len(said) > _GROUPS else ""
    return Verdict(
        kind="not_understood",
        waiting=tuple(waiting),
        sites=tuple(first.sites[rank] for rank in waiting if rank in first.sites),
        confidence=0.5,
        summary=f"Ranks of several groups waited until the time was up: {', '.join(said[:_GROUPS])}{more}; "
        "which of them holds up the others is not printed.",
        claims=claims,
        evidence=texts(claims),
    )


def _behind(watched: Watched) -> Verdict | None:
    """Ranks that never made the call that others wait in."""
    first = min(w.seq for w in watched.waits.values())
    late = {rank: s for rank, s in watched.status.items() if rank not in watched.waits and 0 <= s.enqueued < first}
    if not late:
        return None
    culprits, ahead = tuple(sorted(late)), tuple(sorted(watched.waits))
    last = min(s.enqueued for s in late.values())
    claims = (
        *(_reached(rank, late[rank]) for rank in culprits[:_SHOWN]),
        *_waiting(watched, ahead),
    )
    call = watched.waits[ahead[0]]
    few = len(ahead) < len(culprits)
    their = f"{'their' if len(culprits) > 1 else 'its'} last call is #{last}"
    if few:
        summary = f"{spell(ahead, 8).capitalize()} waited in {call}{_at(watched, ahead)}, which "
        summary += f"{say(culprits, 'have')} not called: {their}."
    else:
        summary = f"{say(culprits, 'have').capitalize()} not called {call}{_at(watched, ahead)}, in which "
        summary += f"{spell(ahead, 8)} waited: {their}."
    return _verdict(
        "extra" if few else "not_arrived",
        watched,
        claims,
        culprits=ahead if few else culprits,
        waiting=culprits if few else ahead,
        confidence=0.6 if few else 0.85,
        summary=summary,
        alternatives=(
            Alternative(
                kind="not_arrived" if few else "extra",
                culprits=culprits if few else ahead,
                because="the numbers say who is further, not which of the two is wrong",
                refute="stacks of both sides: `dtdebug attach` while it hangs",
            ),
        ),
    )


def _apart(watched: Watched) -> Verdict | None:
    """Ranks that wait in different calls."""
    calls = {rank: (w.seq, w.op, w.sizes) for rank, w in watched.waits.items()}
    parts: dict[tuple[int, str, str], list[int]] = {}
    for rank, call in sorted(calls.items()):
        parts.setdefault(call, []).append(rank)
    if len(parts) < 2:
        return None
    ordered = sorted(parts.values(), key=len)
    most = ordered[-1]
    odd = tuple(sorted(rank for ranks in ordered[:-1] for rank in ranks))
    sides = [
        Side(tuple(ranks), f"{spell(ranks, 8)} waited in {watched.waits[ranks[0]]}{_at(watched, ranks)}")
        for ranks in ordered
    ]
    ops = {op for _, op, _ in parts}
    kind: Kind = "replaced" if len(ops) > 1 or len({seq for seq, _, _ in parts}) > 1 else "wrong_size"
    (seq, op), _ = Counter((w.seq, w.op) for w in watched.waits.values()).most_common(1)[0]
    claims = _waiting(watched, (*odd, *most))
    culprits = odd if len(most) > len(odd) else ()
    return disagreement(kind, sides, CollectiveRef(name(op), seq), watched.sites, claims, culprits=culprits)


def _alike(watched: Watched, heard: set[int]) -> Verdict:
    """All who timed out were in one call: a rank that is heard of elsewhere only is the one to look at."""
    waiting = tuple(sorted(watched.waits))
    call = watched.waits[waiting[0]]
    silent = tuple(sorted(heard - set(waiting) - set(watched.status)))
    claims = _waiting(watched, waiting)
    where = _at(watched, waiting)
    if silent and len(silent) * 3 <= len(waiting):
        return _verdict(
            "not_arrived",
            watched,
            claims,
            culprits=silent,
            waiting=waiting,
            confidence=0.5,
            summary=f"{spell(waiting, 8).capitalize()} waited in {call}{where} until the time was up; "
            f"{spell(silent, 8)} printed no such time-out: look there.",
        )
    more = "all of them in the same call" if len(waiting) > 1 else "no other rank says where it was"
    return _verdict(
        "not_understood",
        watched,
        claims,
        waiting=waiting,
        confidence=0.5,
        summary=f"{spell(waiting, 8).capitalize()} waited in {call}{where} until the time was up, {more}: "
        "which rank or device held it up is not printed.",
    )


def _verdict(
    kind: Kind,
    watched: Watched,
    claims: Sequence[Claim],
    *,
    waiting: tuple[int, ...],
    confidence: float,
    summary: str,
    culprits: tuple[int, ...] = (),
    alternatives: tuple[Alternative, ...] = (),
) -> Verdict:
    (seq, op), _ = Counter((w.seq, w.op) for w in watched.waits.values()).most_common(1)[0]
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        collective=CollectiveRef(name(op), seq),
        sites=tuple(watched.sites[rank] for rank in (*culprits, *waiting) if rank in watched.sites),
        confidence=confidence,
        summary=summary,
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=alternatives,
    )


def _waiting(watched: Watched, ranks: Iterable[int]) -> tuple[Claim, ...]:
    rows = [(rank, watched.waits[rank]) for rank in ranks]
    return tuple(called(rank, (w.op, w.seq, w.sizes), w.line, watched.sites.get(rank)) for rank, w in rows[:_SHOWN])


def _reached(rank: int, status: Status) -> Claim:
    words = f"last enqueued work: {status.enqueued}, last completed work: {status.completed}"
    record = Record(source="output", line=status.line, rank=rank, words=words)
    return Claim(what="printed", ranks=(rank,), words=words, record=record)


def _at(watched: Watched, ranks: Iterable[int]) -> str:
    site = next((watched.sites[rank] for rank in ranks if rank in watched.sites), None)
    return f" at {site.file.rsplit('/', 1)[-1]}:{site.line}" if site else ""
