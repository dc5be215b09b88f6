"""Verdicts from the wait-for graph alone: absent ranks, circles, and operations that all entered and none finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dtdebug.recorded.flight_recorder.ended_ranks import ending, is_victim
from dtdebug.recorded.flight_recorder.mutual_wait import each_other
from dtdebug.recorded.flight_recorder.rank_program import P2P, PAIRED
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    call_of,
    group_ref,
    in_flight,
    longest_wait,
    seen_at,
    sites_of,
    sort_sites,
    standing_still,
    waits_of,
    where_now,
)
from dtdebug.recorded.flight_recorder.verdict_text import nothing
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, Kind, RankState, Verdict, say, spell

_NO_DUMP, _DOUBTFUL = 0.5, 0.4
"""Confidence that a rank has ended if the only evidence is that others wait for it and that it left no dump."""
_PLACES = 3
"""Maximum number of ranks whose place the summary states."""
_PAIRED = 0.8
"""Confidence that mismatched tags cause the hang: another message may be on its way."""


def of_waits(records: Records) -> Verdict:
    """Return the verdict of rule B alone: absent ranks, an operation that all have entered, or a circle."""
    waits = records.waits
    expected = frozenset(records.expected)
    for w in waits.waits:
        strangers = sorted(w.awaited - expected) if w.op in {*P2P, *PAIRED} else []
        if strangers and w.group in records.layout.members:
            return _no_such_rank(records, w, strangers)
    sinks = waits.sinks()
    if sinks:
        return _absent(records, sinks)
    stuck = [w for w in waits.waits if not w.awaited]
    live = [s for s in records.states.values() if s.gil_held]
    if live and stuck:
        return _absent(records, [s.rank for s in live if s.rank is not None])
    gone = [r for r in records.expected if r not in records.programs and r not in records.states]
    if stuck and gone and not any(_membership_told(records, w) for w in stuck):
        return _absent(records, gone)
    if stuck:
        return _fabric(records, stuck)
    circle = waits.cycle()
    if circle:
        return each_other(records, circle)
    return nothing(records, "All ranks that have ended lost another one; no record shows which failed first.")


def _no_such_rank(records: Records, wait: Wait, strangers: Sequence[int]) -> Verdict:
    """Return the verdict on a rank that sends to, or receives from, a rank that the job does not have."""
    culprits, waiting = (wait.rank,), standing_still(records, (wait.rank,))
    claims = waits_of(records, [wait])
    return Verdict(
        kind="wrong_root",
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, wait.group),
        collective=CollectiveRef(wait.op, wait.seq),
        sites=sort_sites(sites_of(records, culprits, waiting), culprits),
        confidence=0.9,
        summary=f"Rank {wait.rank} waits in {wait.op} for {spell(strangers)}, and the job has "
        f"{spell(records.expected, 8)} only.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _absent(records: Records, sinks: Sequence[int]) -> Verdict:
    """Return the verdict on ranks that never arrived; of several, on those that are furthest behind."""
    present = tuple(sorted(r for r in sinks if r in records.programs))
    sinks = _furthest_behind(records, sinks)
    culprits = tuple(sorted(sinks))
    states = records.states
    silent = {r for r in sinks if r not in records.programs and r not in states}
    unseen = {r for r in sinks if r not in records.programs and r in states and _unseen(states[r])}
    lost = {r for r in sinks if r in states and states[r].alive is False and not is_victim(states[r])}
    held = [r for r in sinks if r in states and states[r].gil_held]
    if held:
        culprits = tuple(sorted(held))
    kind: Kind = "gil_held" if held else "dead" if silent | lost >= set(sinks) else "not_arrived"
    waiting = standing_still(records, culprits)
    wait = longest_wait(records, culprits)
    call = call_of(records, wait.op, wait.seq, wait.group) if wait else "what the others wait in"
    claims = waits_of(records, [w for w in records.waits.waits if w.awaited & set(culprits)])
    claims += [claim for rank in culprits[:8] for claim in seen_at(records, rank)]
    alternatives: list[Alternative] = []
    if kind == "dead":
        told = "has ended" if lost else "has left no dump and no record"
        if not lost:
            alternatives.append(
                Alternative(
                    kind="fabric",
                    culprits=(),
                    because="a dump that is missing may be lost: its rank may wait as the others do",
                    refute="its process has ended, or its log stops with an error",
                )
            )
        if silent and present:
            alternatives.append(
                Alternative(
                    kind="not_arrived",
                    culprits=present,
                    because=f"the dump of {spell(present)} does not have that operation either",
                    refute=f"{say(culprits, 'do')} not run when the dumps are taken",
                )
            )
        alternatives.append(
            Alternative(
                kind="not_arrived",
                culprits=culprits,
                because="a rank that lives may fail to write its dump",
                refute="its process has ended, or its log stops with an error",
            )
        )
    elif kind == "gil_held":
        told = "is holding the GIL: its recorder answers and its Python does not"
    else:
        came = "never arrived"
        if all(r in states and states[r].alive for r in culprits):
            came = f"{'has' if len(culprits) == 1 else 'have'} not arrived"
        told = f"{came} at {call}{_whereabouts(records, culprits)}"
        if wait is not None and all(records.waits.unbegun(r, wait.group, wait.seq) for r in culprits):
            one = len(culprits) == 1
            told = f"called {call}, but {'its device has' if one else 'their devices have'} not begun it: earlier "
            told += f"work on {'it' if one else 'them'} has not finished"
        young = in_flight(records, wait)
        if young:
            return nothing(
                records,
                f"No hang so far: {call} was begun {young:.1f} s before the records were taken.",
            )
    if unseen:
        told = (
            f"was not found, and the others wait for it in {call}: it has ended, or runs on a host that was not asked"
        )
        confidence = _DOUBTFUL
    elif kind == "dead" and not lost:  # a missing dump does not prove that the rank has ended
        confidence = _NO_DUMP if len(culprits) == 1 and not present else _DOUBTFUL
    else:
        confidence = 0.9 if len(culprits) == 1 else 0.6
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, wait.group) if wait else None,
        collective=CollectiveRef(wait.op, wait.seq) if wait else None,
        sites=sort_sites(sites_of(records, culprits, waiting), culprits),
        confidence=confidence,
        summary=f"{spell(culprits).capitalize()} {told}.",
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=tuple(alternatives),
    )


def _whereabouts(records: Records, culprits: Sequence[int]) -> str:
    """Describe where the culprits are now: once if all are at one place, else per rank."""
    places = {rank: where_now(records, rank) for rank in culprits}
    if len(culprits) == 1 or len(set(places.values())) == 1:
        now = places[culprits[0]]
        now = now if len(culprits) == 1 else now.replace(": it waits ", ": they wait ")
        return f"; {'it is' if len(culprits) == 1 else 'they are'} in {now}" if now else ""
    return "".join(f"; rank {rank} is in {now}" for rank, now in [*places.items()][:_PLACES] if now)


def _unseen(state: RankState) -> bool:
    """True if the rank was never observed and is known only because the others count it."""
    return state.alive is None and not state.stack and state.pid is None


def _membership_told(records: Records, wait: Wait) -> bool:
    """True if the rank's dump lists the members of the group; gloo's dumps do not."""
    p = records.programs.get(wait.rank)
    return p is not None and wait.group in p.groups and bool(p.groups[wait.group].ranks)


def _furthest_behind(records: Records, sinks: Sequence[int]) -> list[int]:
    """Return the sinks that stopped first; the others have given up waiting for them."""
    lost = [r for r in sinks if r not in records.programs]
    if lost or len(sinks) < 2:
        return lost or [*sinks]
    calls = {r: len(records.programs[r].order) for r in sinks}
    if len({records.programs[r].whole for r in sinks}) == 1 and len(set(calls.values())) > 1:
        fewest = min(calls.values())
        return [r for r in sinks if calls[r] == fewest]
    return [*sinks]


def _fabric(records: Records, stuck: Sequence[Wait]) -> Verdict:
    group, op, seq = Counter((w.group, w.op, w.seq) for w in stuck).most_common(1)[0][0]
    inside = tuple(sorted({w.rank for w in stuck if (w.group, w.op, w.seq) == (group, op, seq)}))
    wait = next(w for w in stuck if (w.group, w.op, w.seq) == (group, op, seq))
    call = call_of(records, op, seq, group)
    young = in_flight(records, wait)
    if young:
        return nothing(records, f"No hang so far: {call} was begun {young:.1f} s before the records were taken.")
    if op == "batch_isend_irecv" and wait.position is None:
        return nothing(records, f"{call} was begun by {spell(inside)}; whom each of them names is in no record.")
    if op in P2P:
        return _pairs(records, [w for w in stuck if w.op in P2P])
    members = records.layout.members.get(group, ())
    everyone = set(members) <= set(inside)
    if op in ("broadcast", "reduce") and not everyone:
        return _doubtful_root(records, group, op, seq, inside)
    told = "all of its ranks" if everyone else spell(inside)
    claims = waits_of(records, [w for w in stuck if (w.group, w.op, w.seq) == (group, op, seq)])
    over = [s for r in inside if (s := records.states.get(r)) is not None and s.alive is False and s.exception]
    if len(over) == len(inside):
        claims = [ending(s) for s in over[:8]]
        rest = f"and failed on each of them: {claims[0].text}"
    elif _by_device(records, stuck):
        rest = "and has not finished: all calls agree, so look at what their devices do before it, and at the links."
    else:
        rest = "and has not finished: all calls agree, so look at the links, not at the program."
    return Verdict(
        kind="fabric",
        waiting=inside,
        group=group_ref(records, group),
        collective=CollectiveRef(op, seq),
        sites=sort_sites(sites_of(records, (), inside), ()),
        confidence=0.7 if everyone else 0.5,
        summary=f"{call} was entered by {told} {rest}",
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=(
            Alternative(
                kind="wrong_root",
                culprits=(),
                because="the recorder does not keep the root of a broadcast or reduce",
                refute="live stacks name one `src` or `dst` on all ranks",
            ),
        )
        if op in ("broadcast", "reduce")
        else (),
    )


def _by_device(records: Records, stuck: Sequence[Wait]) -> bool:
    """True if a GPU runs the operations and no dump shows which one has started."""
    programs = [p for w in stuck if (p := records.programs.get(w.rank)) is not None]
    return any(p.backend not in ("", "gloo") and not any(o.started for o in p.open) for p in programs)


def _pairs(records: Records, stuck: Sequence[Wait]) -> Verdict:
    """Return the verdict on sends and receives that both ends have begun and neither finishes.

    The recorder keeps no tags; stacks may show them.
    """
    ranks = tuple(sorted({w.rank for w in stuck}))
    ends = [(s, s.pending) for r in ranks if (s := records.states.get(r)) is not None and s.pending is not None]
    tagged = [(s.rank, p) for s, p in ends if p.tag is not None and p.peer in ranks]
    differ = len({p.tag for _, p in tagged}) > 1 and len(tagged) == len(ranks) == 2
    words = "; ".join(f"rank {rank} is in {p.op} with tag {p.tag}" for rank, p in tagged)
    claims = waits_of(records, stuck)
    if differ:
        record = Record(source="stack", rank=ranks[0])
        claims = [*claims, Claim(what="compared", ranks=ranks, record=record, words=f"the tags differ: {words}")]
    ops = " and ".join(dict.fromkeys(w.op for w in stuck))
    why = (
        f"{words}: a receive only meets a send of its own tag."
        if differ
        else "both ends have begun, and which tags they have is in no record: unlike tags, sizes or order, or the link."
    )
    return Verdict(
        kind="replaced" if differ else "not_understood",
        waiting=ranks,
        group=group_ref(records, stuck[0].group),
        collective=CollectiveRef(stuck[0].op, stuck[0].seq),
        sites=sort_sites(sites_of(records, (), ranks), ()),
        confidence=_PAIRED if differ else _DOUBTFUL,
        summary=f"{spell(ranks).capitalize()} wait for each other in {ops}; {why}",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _doubtful_root(records: Records, group: str, op: str, seq: int | None, inside: tuple[int, ...]) -> Verdict:
    """Return the verdict if some ranks finished a broadcast or reduce that others can't: the roots may differ."""
    lowest = inside[:1] if len(inside) > 1 else ()  # the lowest rank is the more usual root
    rest = inside[len(lowest) :]
    call = call_of(records, op, seq, group)
    others = tuple(r for r in records.layout.members.get(group, ()) if r not in inside)
    known = {"op": op, "seq": seq, "group": records.layout.name(group)}
    claims = [
        Claim(what="unfinished", ranks=inside, record=Record(source="dump", rank=inside[0]), **known),  # type: ignore[arg-type]
        *(
            Claim(what="finished", ranks=(rank,), record=Record(source="dump", rank=rank), **known)  # type: ignore[arg-type]
            for rank in others[:8]
        ),
    ]
    return Verdict(
        kind="wrong_root",
        culprits=rest,
        waiting=lowest,
        group=group_ref(records, group),
        collective=CollectiveRef(op, seq),
        sites=sort_sites(sites_of(records, rest, lowest), rest),
        confidence=0.4,
        summary=f"{say(inside, 'do').capitalize()} not seem to agree with the others on the root of {call}.",
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=(
            *map(_other_root, lowest),
            Alternative(kind="fabric", culprits=(), because="a link failed in the middle of the operation"),
        ),
    )


def _other_root(rank: int) -> Alternative:
    return Alternative(
        kind="wrong_root",
        culprits=(rank,),
        because="the recorder does not keep roots: the lower rank is only the more usual one",
        refute="the source at the call sites names `src` or `dst`",
    )
