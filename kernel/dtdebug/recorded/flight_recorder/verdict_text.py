"""Turns findings into verdicts: each function builds a `Verdict` with its evidence and alternatives."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.recorded.flight_recorder import ended_ranks
from dtdebug.recorded.flight_recorder.claims import entry, latecomers, of_deviation
from dtdebug.recorded.flight_recorder.deviation import Deviation
from dtdebug.recorded.flight_recorder.loop_exits import way_out
from dtdebug.recorded.flight_recorder.stragglers import stragglers
from dtdebug.recorded.flight_recorder.verdict_input import (
    Records,
    by_backward,
    call_of,
    called_last,
    confidence,
    group_ref,
    longest_wait,
    sites_of,
    sort_sites,
    standing_still,
    waits_of,
)
from dtdebug.recorded.flight_recorder.wait_graph import Wait
from dtdebug.recorded.flight_recorder.wrong_root import WrongRoots
from dtdebug_taxonomy.model.claims import Claim, distinct, texts
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, CollectiveRef, Kind, RankState, Verdict, say, spell
from dtdebug_taxonomy.stacks.frames import call_site

_DID: dict[Kind, str] = {
    "skipped": "never called {call}",
    "extra": "called {came} where no other rank does: they call {call}",
    "replaced": "called {came} where the others call {call}",
    "wrong_size": "called {call} with a different size from the others",
    "wrong_dtype": "called {call} with a different dtype from the others",
    "wrong_root": "called {call} with a different root from the others",
}


def nothing(records: Records, note: str = "") -> Verdict:
    """Return a verdict of "no hang": no rank waits; without an observer, progress is unknown."""
    count = len(records.programs) or len(records.states)
    late = stragglers(records.programs, records.layout)
    said = note or f"Every operation that {count} rank{'s have' if count != 1 else ' has'} recorded has ended."
    claims = latecomers(records, late)
    if late:
        said += f" {say(late, 'arrive').capitalize()} last again and again: slow, but no hang."
    return Verdict(
        kind="none",
        confidence=0.9 if count == len(records.expected) else 0.5,
        summary=said,
        claims=claims,
        evidence=texts(claims),
        stragglers=tuple(sorted(late)),
    )


def of_deviations(records: Records, found: Sequence[Deviation], others: Sequence[Deviation]) -> Verdict:
    """Return the verdict on ranks that diverged from their peers; only the first divergence counts."""
    first = found[0]
    alike = [d for d in found if (d.kind, d.op, d.seq) == (first.kind, first.op, first.seq)]
    culprits = tuple(sorted(d.rank for d in alike))
    waiting = standing_still(records, culprits)
    groups = dict.fromkeys(d.group for d in sorted(alike, key=lambda d: d.rank))  # each may diverge in its own group
    call = call_of(records, first.op, first.seq, *groups)
    p = records.programs[first.rank]
    came = p.symbol(first.position).op
    came = f"{came} #{p.seqs[first.position]} of {records.layout.name(p.group(first.position))}"
    did = _DID[first.kind].format(call=call, came=came)
    if first.kind == "extra" and came == call:
        did = f"called {came} once more than the others"
    if first.against:
        opposite = spell(first.against, 8)
        did = did.replace("no other rank does: they call", f"{opposite} called")
        wrong = "did so" if first.kind.startswith("wrong_") else f"should not have called {call}"
        did += f", or {opposite} {wrong}; it is not known which of them is wrong"
    if first.kind == "skipped":
        did += by_backward(records, culprits, first.op, first.seq)
    claims = tuple(of_deviation(records, first))
    alternatives = [
        Alternative(
            kind=d.kind,
            culprits=(d.rank,),
            because=f"rank {d.rank} left the common program too: {d.because}",
            refute="its calls before that point are those of its peers",
        )
        for d in [*(x for x in found if x.rank not in culprits), *others][:3]
    ]
    if first.against:
        alternatives.insert(
            0,
            Alternative(
                kind=first.kind,
                culprits=first.against,
                because=f"{spell(first.against, 8)} called {call}",
                refute="the source says what both should call here",
            ),
        )
    if not first.told:
        twin: Kind = "replaced" if first.kind == "extra" else "extra"
        alternatives.append(
            Alternative(
                kind=twin,
                culprits=culprits,
                because="the records end at this call, so what the rank would have called next is not known",
                refute="the source around the two call sites tells",
            )
        )
    sites = sites_of(records, culprits, waiting)
    if len(culprits) == 1 and (site := call_site(first.rank, first.site)) is not None:
        sites[first.rank] = site
    return Verdict(
        kind=first.kind,
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, first.group),
        collective=CollectiveRef(first.op, first.seq),
        sites=sort_sites(sites, culprits),
        confidence=confidence(records, certain=first.certain, told=first.told),
        summary=f"{spell(culprits).capitalize()} {did}.",
        claims=claims,
        evidence=texts(claims),
        alternatives=tuple(alternatives),
    )


def of_roots(records: Records, found: WrongRoots) -> Verdict:
    """Return the verdict on ranks that name a different root from their peers."""
    waiting = standing_still(records, found.culprits)
    call = call_of(records, found.op, found.seq, found.group)
    record = entry(records, found.culprits[0], None)
    claim = Claim(what="compared", ranks=found.culprits, record=record, words=found.because)
    return Verdict(
        kind="wrong_root",
        culprits=found.culprits,
        waiting=waiting,
        group=group_ref(records, found.group),
        collective=CollectiveRef(found.op, found.seq),
        sites=sort_sites(sites_of(records, found.culprits, waiting), found.culprits),
        confidence=confidence(records, certain=found.certain, told=True),
        summary=f"{spell(found.culprits).capitalize()} {_DID['wrong_root'].format(call=call, came='')}.",
        claims=(claim,),
        evidence=(claim.text,),
    )


def has_failed_rank(records: Records) -> bool:
    """True if a rank ended in a failure."""
    return any(ended_ranks.ended_in_failure(s) for s in records.states.values())


def dead(records: Records) -> Verdict | None:
    """Return the verdict on a rank that ended while others needed it; ranks ended by another's failure are victims."""
    gone = [s for s in records.states.values() if s.alive is False]
    victims = [s for s in gone if ended_ranks.is_victim(s) and s.rank is not None]
    roots = [s for s in gone if s not in victims]
    failed = [s for s in roots if ended_ranks.ended_in_failure(s)]
    awaited = [s for s in roots if s.rank in records.waits.awaited]
    chosen = [s for s in failed if s in awaited] or failed or awaited
    if not chosen:
        chosen = (
            [s for s in roots if ended_ranks.has_finished(s)] if any(ended_ranks.lost_peer(s) for s in victims) else []
        )
    if not chosen:
        return None
    culprits = tuple(sorted(s.rank for s in chosen if s.rank is not None))
    waiting = standing_still(records, culprits) or tuple(sorted(s.rank for s in victims if s.rank is not None))
    wait = longest_wait(records, culprits)
    finished = all(ended_ranks.has_finished(s) for s in chosen)
    claims = [ended_ranks.ending(s) for s in chosen]
    claims += called_last(records, culprits) if finished else []
    out = way_out(records, chosen[0]) if finished and len(chosen) == 1 else None
    claims += [out.claim] if out is not None else []
    claims += waits_of(records, [w for w in records.waits.waits if w.awaited & set(culprits)])
    claims += [ended_ranks.ending(s) for s in victims[:8]]
    claims = [*distinct(claims)]
    if finished and wait is not None and len(waiting) < len(culprits) == len(records.expected) - len(waiting):
        return _beyond(records, waiting, culprits, wait, claims)
    first = claims[0].text.rstrip(".")
    if finished and wait is not None:
        summary = _departure_summary(records, first, culprits, waiting, wait)
        if out is not None and out.certain:
            summary += f". Only {out.claim.record.words} at {out.claim.file}:{out.claim.line} leaves its loop"
    else:
        summary = f"{first}; {_consequence(records, waiting, wait, victims)}" if waiting or victims else first
    sites = sites_of(records, culprits, waiting)  # for a rank that ran to its end, the site of its last call
    if out is not None and out.certain:
        sites[culprits[0]] = CallSite(culprits[0], out.claim.file, out.claim.line, out.claim.function)
    return Verdict(
        kind="left" if finished else "dead",
        culprits=culprits,
        waiting=waiting,
        group=group_ref(records, wait.group) if wait else None,
        collective=CollectiveRef(wait.op, wait.seq) if wait else None,
        sites=sort_sites(sites, culprits),
        confidence=0.95 if failed or any(s.exit_code == 0 for s in chosen) else 0.8,
        summary=f"{summary}.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _beyond(
    records: Records, ranks: tuple[int, ...], finished: tuple[int, ...], wait: Wait, claims: Sequence[Claim]
) -> Verdict:
    """Return the verdict on the few ranks that wait in an extra call while most have finished the program."""
    call = call_of(records, wait.op, wait.seq, wait.group)
    return Verdict(
        kind="extra",
        culprits=ranks,
        group=group_ref(records, wait.group),
        collective=CollectiveRef(wait.op, wait.seq),
        sites=sort_sites(sites_of(records, ranks, ()), ranks),
        confidence=0.7,
        summary=f"{spell(ranks, 8).capitalize()} called {call}, which no other rank did: "
        f"{say(finished, 'have')} finished the program.",
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=(
            Alternative(
                kind="left",
                culprits=finished,
                because=f"they may have finished before they came to {call}",
                refute="the source says how often each rank should come there",
            ),
        ),
    )


def _departure_summary(
    records: Records, first: str, culprits: Sequence[int], waiting: Sequence[int], wait: Wait
) -> str:
    """Describe how ranks left the program, after which call, and which call of the others they never made."""
    last = next(iter(called_last(records, culprits[:1])), None) if len(culprits) == 1 else None
    after = f" after {last.op} #{last.seq}{_at(last)}" if last is not None and last.op and last.seq else ""
    theirs = next((c for c in waits_of(records, [wait]) if c.op), None)
    call = call_of(records, wait.op, wait.seq, wait.group)
    same = {w.rank for w in records.waits.waits if (w.group, w.op, w.seq) == (wait.group, wait.op, wait.seq)}
    rest = sorted({*waiting} - same) if same & {*waiting} else []
    callers, others = sorted({*waiting} - {*rest}), f"; {say(rest, 'wait')} elsewhere" if rest else ""
    return f"{first}{after} without calling {call}, in which {say(callers, 'wait')}{_at(theirs)}{others}"


def _at(claim: Claim | None) -> str:
    return f" at {claim.file}:{claim.line} in {claim.function}" if claim is not None and claim.file else ""


def _consequence(records: Records, waiting: Sequence[int], wait: Wait | None, victims: Sequence[RankState]) -> str:
    """Describe the effect on the other ranks."""
    lost = [s.rank for s in victims if s.rank is not None]
    if set(waiting) <= set(lost):
        return f"{spell(lost, 8)} failed because of it"
    call = f" in {call_of(records, wait.op, wait.seq, wait.group)}" if wait is not None else ""
    return f"{say(waiting, 'wait')}{call} for it"
