"""Verdicts on dumps alone: the ranks were not watched, and none of them can be asked.

An open operation hangs, unless it was begun a moment before the dumps were written. `none` needs the dumps of all
ranks, and nothing open in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dtdebug.recorded.flight_recorder import not_arrived, verdict_text
from dtdebug.recorded.flight_recorder.alignment_tables import Tables
from dtdebug.recorded.flight_recorder.argument_diff import arguments
from dtdebug.recorded.flight_recorder.claims import entry, latecomers, of_verdict, whereabouts
from dtdebug.recorded.flight_recorder.deviation import Deviation
from dtdebug.recorded.flight_recorder.disagreement import of_disagreement
from dtdebug.recorded.flight_recorder.group_layout import Layout
from dtdebug.recorded.flight_recorder.rank_program import P2P, Program
from dtdebug.recorded.flight_recorder.stragglers import stragglers
from dtdebug.recorded.flight_recorder.stuck_devices import of_devices
from dtdebug.recorded.flight_recorder.verdict import deviations, matters
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    call_of,
    group_ref,
    in_flight,
    longest_wait,
    standing_still,
)
from dtdebug.recorded.flight_recorder.wait_cycle import of_circle
from dtdebug.recorded.flight_recorder.wait_graph import Wait, Waits
from dtdebug.recorded.flight_recorder.wrong_root import wrong_roots
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import Alternative, CollectiveRef, RankState, Verdict, say, spell


def verdict_on_dumps(programs: Mapping[int, Program], unread: Sequence[RankState], layout: Layout) -> Verdict:
    """Return the verdict, with its claims; `unread` are ranks whose dump can't be read."""
    waits = Waits(programs, layout, unread)
    records = Records(
        programs, {s.rank: s for s in unread if s.rank is not None}, layout, waits, tuple(range(layout.world_size))
    )
    if not waits.waits:
        return _quiet(records)
    young = _young(records)
    if young is not None:
        return of_verdict(records, _too_soon(records, young))
    relevant = [d for d in deviations(Tables(programs, layout), records) if matters(d, records)]
    certain = [d for d in relevant if d.certain]
    if certain:
        found = verdict_text.of_deviations(records, certain, [d for d in relevant if not d.certain])
        return of_verdict(records, _thin(records, _in_full(records, found, certain[0])))
    roots = wrong_roots(records)
    if roots is not None:
        return of_verdict(records, verdict_text.of_roots(records, roots))
    for d in relevant:
        apart = of_disagreement(records, d)
        if apart is not None:
            return of_verdict(records, apart)
    devices = of_devices(records)
    if devices is not None:
        return of_verdict(records, devices)
    if relevant:
        return of_verdict(records, verdict_text.of_deviations(records, relevant[:1], relevant[1:]))
    passed = of_circle(records)
    if passed is not None:
        return of_verdict(records, passed)
    return of_verdict(records, _qualify_verdict(records, not_arrived.of_waits(records)))


def _quiet(records: Records) -> Verdict:
    """Return the verdict if nothing is open: no hang if all dumps were read and the ranks are equally far."""
    empty = sorted(r for r, p in records.programs.items() if not len(p.order))
    if len(empty) == len(records.programs) and not any(p.groups for p in records.programs.values()):
        summary = f"The dumps of {spell(empty)} hold no entry: nothing was recorded."
        return of_verdict(records, Verdict(kind="not_understood", confidence=0.0, summary=summary))
    gone = tuple(r for r in records.expected if r not in records.programs)
    behind = _behind(records)
    if not gone and behind is None:
        seen = len(records.programs)
        late = stragglers(records.programs, records.layout)
        slow = f" {say(late, 'arrive').capitalize()} last again and again: slow, but no hang." if late else ""
        return Verdict(
            kind="none",
            confidence=0.9,
            summary=f"Nothing is open in the dumps of all {seen} ranks: every operation was finished.{slow}",
            claims=(claims := latecomers(records, late)),
            evidence=texts(claims),
            stragglers=tuple(sorted(late)),
        )
    if behind is not None:
        return of_verdict(records, behind)
    summary = f"Nothing is open in the dumps of {spell(sorted(records.programs))}; {say(gone, 'have')} left no dump."
    claims = tuple(whereabouts(records, gone[:8]))
    return of_verdict(records, Verdict(kind="not_understood", confidence=0.0, summary=summary, claims=claims))


def _behind(records: Records) -> Verdict | None:
    """Return the verdict on a collective that some have finished and another never entered, though nothing is open."""
    latest = {rank: _latest_entry_seqs(p) for rank, p in records.programs.items()}
    for group, members in records.layout.members.items():
        reached = {m: seq for m in members if m in latest and (seq := latest[m].get(group))}
        top = max(reached.values(), default=0)
        late = tuple(sorted(m for m, seq in reached.items() if seq < top))
        if top and late:
            first = max(reached, key=lambda m: (reached[m], -m))
            name = records.layout.name(group)
            return Verdict(
                kind="not_understood",
                waiting=(),
                group=group_ref(records, group),
                confidence=0.0,
                summary=f"Nothing is open, but {say(late, 'are')} not as far in {name} as {spell((first,))}, "
                "and nothing says why.",
                claims=tuple(
                    Claim(what="counted", ranks=(m,), record=entry(records, m, None), count=reached[m], group=name)
                    for m in (first, *late[:8])
                ),
            )
    return None


def _latest_entry_seqs(p: Program) -> dict[str, int]:
    """Return group -> sequence number of a rank's latest collective by its entries; counters may include sends."""
    found: dict[str, int] = {}
    passing = [s.op in P2P for s in p.symbol_table]
    for index, number, seq in zip(p.order, p.symbols, p.seqs, strict=True):
        if not passing[number]:
            found[p.names[index]] = max(seq, found.get(p.names[index], 0))
    return found


def _young(records: Records) -> Wait | None:
    """Return an operation begun a moment before the dumps, if none was begun long before."""
    waits = records.waits.waits
    return (
        next((w for w in waits if in_flight(records, w)), None) if all(in_flight(records, w) for w in waits) else None
    )


def _too_soon(records: Records, wait: Wait) -> Verdict:
    call = call_of(records, wait.op, wait.seq, wait.group)
    age = in_flight(records, wait)
    return Verdict(
        kind="not_understood",
        waiting=standing_still(records, ()),
        group=group_ref(records, wait.group),
        collective=CollectiveRef(wait.op, wait.seq),
        confidence=0.0,
        summary=f"{call} was begun {age:.1f} s before the dumps were written: too soon to say whether it hangs.",
    )


def _qualify_verdict(records: Records, found: Verdict) -> Verdict:
    """Qualify a verdict: unexplained waits are "not understood", never healthy; a missing dump proves little."""
    if found.culprits and not any(r in records.programs for r in found.culprits):
        return _without_dump(records, found)
    if len(found.culprits) > 1 and found.culprits == tuple(records.waits.cycle()):
        return msgspec.structs.replace(found, confidence=min(found.confidence, 0.45))  # one of them is wrong, not all
    if found.kind != "none":
        return found
    waiting = standing_still(records, ())
    return msgspec.structs.replace(
        found,
        kind="not_understood",
        waiting=waiting,
        confidence=0.0,
        summary=f"{say(waiting, 'wait').capitalize()}, and the dumps do not say for whom.",
    )


def _without_dump(records: Records, found: Verdict) -> Verdict:
    """Qualify a verdict whose culprits left no readable dump: whether they arrived is unknown."""
    who, wait = found.culprits, longest_wait(records, found.culprits)
    call = call_of(records, wait.op, wait.seq, wait.group) if wait else "what the others wait in"
    damaged = [r for r in who if r in records.states]
    if damaged:
        summary = f"Other ranks wait for {spell(who)} in {call}, and {spell(damaged)} left a dump that can't be read."
        return msgspec.structs.replace(
            found,
            kind="not_arrived",
            confidence=0.4,
            summary=summary,
            alternatives=_ended_instead(who),
        )
    why = f"{say(who, 'have')} left no dump: ended, or waiting too with the dump lost."
    return msgspec.structs.replace(found, summary=f"Other ranks wait for {spell(who)} in {call}; {why}")


def _ended_instead(who: tuple[int, ...]) -> tuple[Alternative, ...]:
    return (
        Alternative(
            kind="dead",
            culprits=who,
            because="a dump is cut where its rank ends while it writes",
            refute="the process lives, or its log goes on",
        ),
    )


def _in_full(records: Records, found: Verdict, d: Deviation) -> Verdict:
    """Put differing sizes and types into the first sentence."""
    if found.kind not in ("wrong_size", "wrong_dtype") or d.peer not in records.programs:
        return found
    here, there = arguments(
        records.programs[d.rank].symbol(d.position), records.programs[d.peer].symbol(d.peer_position)
    )
    call, same = call_of(records, d.op, d.seq, d.group), found.culprits == (d.rank,)
    if not same or here == there:
        return found
    said = f"{spell((d.rank,))} called {call} with {here}, the others with {there}"
    return msgspec.structs.replace(found, summary=f"{said[0].upper()}{said[1:]}.")


def _thin(records: Records, found: Verdict) -> Verdict:
    """Lower the confidence if ended entries were dropped: an earlier skipped call shifts all later numbers."""
    if not any(records.programs[r].active_only for r in found.culprits):
        return found
    shifted = Alternative(
        kind="skipped",
        culprits=found.culprits,
        because="only active entries were kept: a call left out earlier makes the next ones differ in the same way",
        refute="a dump that holds ended entries too, or the source at the call sites",
    )
    return msgspec.structs.replace(
        found, confidence=min(found.confidence, 0.75), alternatives=(shifted, *found.alternatives)
    )
