"""Which rank differs, from what NCCL's watchdog prints: the collective that each rank waited in, and how far it is.

A watchdog numbers the collectives of its group from 0 or 1 up, in the order in which its rank called them, so that one
number means the same call on every rank. A rank whose last call has a lower number never made the one that the others
wait in. The words are those of `ProcessGroupNCCL.cpp`:
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.claims import Claim, Record, texts
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
)
_STATUS = re.compile(
    _GROUP + r"[^\n]{0,300}?[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,18}), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,18})"
)
_AT = re.compile(r"detected by watchdog at work(?: sequence id)?: (\d{1,18})")
_STACK = "Stack trace of the failed collective:"
_FRAME = re.compile(r"#(\d{1,3}) (\S{1,200}) from ([^\n]{1,500}):(\d{1,9})$")
_EQUAL_SIZES = frozenset({"ALLREDUCE", "BROADCAST", "REDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"})
"""Collectives whose sizes NCCL wants the same on every rank."""
_DEFAULT = ("0(default_pg)", "(default_pg)", "0")
"""How releases call the group of all ranks."""
_SHOWN, _FRAMES = 8, 60


class Wait(NamedTuple):
    """The collective that timed out on a rank."""

    seq: int
    op: str
    sizes: str
    line: int

    def __str__(self) -> str:
        return f"{name(self.op)} #{self.seq}" + (f" of {self.sizes}" if self.sizes else "")


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


def read(log: Reading) -> Watched | None:
    """What is said of one group: the only one, else the default group; None where no rank timed out in it."""
    waits: dict[tuple[str, int], list[Wait]] = {}
    status: dict[tuple[str, int], Status] = {}
    group_of: dict[tuple[int, int], str] = {}
    sites: dict[int, CallSite] = {}
    for index, line in enumerate(log.lines):
        if "Watchdog caught" in line.body and (found := _CAUGHT.search(line.body)):
            rank = int(found["rank"]) if line.rank is None else line.rank
            waits.setdefault((_group(found), rank), []).append(_wait(found, line.number))
        elif "ast enqueued" in line.body and (found := _STATUS.search(line.body)):
            rank = int(found["rank"]) if line.rank is None else line.rank
            group = _group(found)
            status.setdefault((group, rank), Status(int(found["enqueued"]), int(found["completed"]), line.number))
            if at := _AT.search(line.body):
                group_of.setdefault((rank, int(at[1])), group)
        elif _STACK in line.body and line.rank is not None and (site := _site(log.lines, index)):
            sites.setdefault(line.rank, site)
    named: dict[str, dict[int, list[Wait]]] = {}
    for (group, rank), rows in waits.items():
        known = group or group_of.get((rank, rows[0].seq), "")
        named.setdefault(known, {}).setdefault(rank, []).extend(rows)
    if len(named) == 2 and "" in named:  # some ranks only say which group it was
        (chosen,) = named.keys() - {""}
        for rank, rows in named.pop("").items():
            named[chosen].setdefault(rank, []).extend(rows)
    mine = next(iter(named.values())) if len(named) == 1 else next((named[g] for g in _DEFAULT if g in named), None)
    if mine is None or any(len({(w.seq, w.op) for w in rows}) > 1 for rows in mine.values()):
        return None  # several groups, whose numbers can't be told apart
    group = next(g for g, rows in named.items() if rows is mine)
    return Watched(
        {rank: rows[0] for rank, rows in mine.items()},
        {rank: s for (g, rank), s in status.items() if g == group},
        sites,
    )


def _group(found: re.Match[str]) -> str:
    """The name that all members print: PG ID counts on each rank for itself."""
    return found["name"] or found["id"] or ""


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
    watched = read(log)
    if watched is None:
        return None
    return _behind(watched) or _apart(watched) or _alike(watched, {x.rank for x in log.lines if x.rank is not None})


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
    clear = len(most) > len(odd)
    rows = [f"{spell(ranks, 8)} waited in {watched.waits[ranks[0]]}{_at(watched, ranks)}" for ranks in ordered]
    ops = {op for _, op, _ in parts}
    kind: Kind = "replaced" if len(ops) > 1 or len({seq for seq, _, _ in parts}) > 1 else "wrong_size"
    unknown = "" if clear else "; which of them is wrong is not known"
    return _verdict(
        kind,
        watched,
        _waiting(watched, (*odd, *most)),
        culprits=odd if clear else (),
        waiting=tuple(sorted(most)) if clear else tuple(sorted(calls)),
        confidence=0.7 if clear else 0.5,
        summary=f"The ranks were not in the same call: {', '.join(rows[:4])}{unknown}.",
        alternatives=tuple(
            Alternative(
                kind=kind,
                culprits=tuple(ranks),
                because=f"{spell(ranks, 8)} called {watched.waits[ranks[0]]}",
                refute="the source says what all of them should call here",
            )
            for ranks in ordered[:2]
        ),
    )


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
