"""Verdicts on ranks that wait in the set-up of the default process group: arrived, missing, and misdirected ranks.

A rank whose address, port or number of ranks differs from the others' never reaches them; of two processes with the
same rank, one is mistaken for the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from dtdebug.recorded.flight_recorder.ended_ranks import ending, has_finished
from dtdebug_taxonomy.model.claims import SHARED_RANK, Claim, Record, texts
from dtdebug_taxonomy.model.ranks import TWICE, CollectiveRef, Kind, RankState, Verdict, say, spell
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.frames import call_sites, place_claim, shown_frame

_SET_UP = "init_process_group"
_MEETING = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
"""Variables that must be equal on all ranks for them to connect."""
_SHOWN = 8


def arrival(states: Sequence[RankState]) -> Verdict | None:
    """Return the verdict if living ranks wait for the others in `init_process_group`; None if none does."""
    inside = [s for s in states if s.alive and not s.initialized and is_inside(s)]
    if not inside:
        return None
    world = max((s.world_size or 0 for s in inside), default=0)
    came = tuple(sorted(s.rank for s in states if s.rank is not None and (s.initialized or s in inside)))
    missing = tuple(rank for rank in range(world) if rank not in came)
    claims = [
        place_claim(
            Claim(what="waits", ranks=(s.rank or 0,), record=_record(s), op=_SET_UP, of=missing), shown_frame(s.stack)
        )
        for s in inside[:_SHOWN]
    ]
    apart, odd = _setting_differences(states)
    twice = [s for s in states if s.facts.get(TWICE)]
    claims = [*apart, *(_twice(s) for s in twice), *claims]
    those = [claim for s in states if s.rank in missing and s.stack for claim in _place_claims(s)][:_SHOWN]
    gone = [s for s in states if s.rank in missing and s.alive is False]
    claims = [*map(ending, gone[:_SHOWN]), *those, *claims]
    missing_unseen = tuple(r for r in missing if not any(s.rank == r and s.alive is not None for s in states))
    if missing_unseen:
        claims.append(
            Claim(
                what="missing", ranks=missing_unseen, record=_record(inside[0]), words=f"{_SET_UP}: no process was seen"
            )
        )
    head = f"{say(came, 'wait').capitalize()} in {_SET_UP}"
    kind: Kind = "not_arrived"
    seen = [s for s in states if s.rank in missing and s.alive is not None]
    started = {n for s in inside if (n := s.environment.get("ROLE_WORLD_SIZE", "")).isdecimal() and int(n) < world}
    if odd or apart:
        said = texts(apart)[0].rstrip(".")
        summary, culprits, confidence = f"{said}: so they never meet in {_SET_UP}.", odd, 0.8 if odd else 0.6
    elif twice:
        none = f", and no process has {spell(missing_unseen, _SHOWN)}" if missing_unseen else ""
        summary = f"{texts([_twice(twice[0])])[0].rstrip('.')}{none}; {head[0].lower()}{head[1:]} of {world} ranks."
        culprits, confidence = tuple(s.rank for s in twice if s.rank is not None), 0.8
    elif gone and len(gone) == len(missing):
        finds = texts([ending(gone[0])])[0].rstrip(".")
        kind = "left" if all(map(has_finished, gone)) else "dead"
        summary = f"{finds}; {head[0].lower()}{head[1:]} of {world} ranks, where {_name_missing(missing)} never came."
        culprits, confidence = missing, 0.9
    elif missing_unseen and len(started) == 1:
        count = started.pop()
        record = Record(source="agent", rank=came[0], words=f"ROLE_WORLD_SIZE={count}")
        words = f"the launcher has started {count} processes, and the program waits for {world}"
        claims.append(Claim(what="system", ranks=came, record=record, words=words))
        summary = f"{head} of {world} ranks, and the launcher has started {count}: nothing starts {spell(missing)}."
        culprits, confidence = missing, 0.9
    elif missing:
        where = "" if seen or _is_whole(inside, world) else " on this host; it may be on another one"
        not_seen = "" if seen else f", of which no process was seen{where}"
        summary = f"{head} of {world} ranks for {spell(missing, _SHOWN)}{not_seen}."
        if those:
            which = _name_missing(missing)
            summary = f"{those[0].text.rstrip('.')}; {head[0].lower()}{head[1:]} of {world} ranks for {which}."
        culprits, confidence = missing, 0.9 if len(seen) == len(missing) else 0.7 if not where else 0.4
    else:
        return Verdict(
            kind="not_understood",
            waiting=came,
            sites=call_sites(inside),
            collective=CollectiveRef(_SET_UP, None),
            summary=f"{head} of {world} ranks, and all have arrived.",
            claims=tuple(claims),
            evidence=texts(claims),
        )
    return Verdict(
        kind=kind,
        culprits=culprits,
        waiting=tuple(rank for rank in came if rank not in culprits),
        collective=CollectiveRef(_SET_UP, None),
        sites=(
            *call_sites(s for s in states if s.rank in culprits),
            *call_sites(s for s in inside if s.rank not in culprits),
        ),
        confidence=confidence,
        summary=summary,
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _name_missing(missing: Sequence[int]) -> str:
    return "it" if len(missing) == 1 else spell(missing, _SHOWN)


def is_inside(state: RankState) -> bool:
    """True if the main thread is in the set-up of the default process group."""
    return any(f.function == _SET_UP and f.file.endswith("distributed_c10d.py") for f in state.stack)


def _setting_differences(states: Sequence[RankState]) -> tuple[list[Claim], tuple[int, ...]]:
    """Return claims on settings that differ between ranks, and the ranks in the minority, if there is one."""
    claims, odd = [], set()
    for name in _MEETING:
        values: dict[str, list[int]] = defaultdict(list)
        for s in states:
            if s.alive is not False and s.rank is not None and s.environment.get(name):
                values[s.environment[name]].append(s.rank)
        if len(values) < 2:
            continue
        (most, count), *_ = Counter({value: len(ranks) for value, ranks in values.items()}).most_common(1)
        fewer = {value: ranks for value, ranks in values.items() if value != most}
        decided = all(len(ranks) < count for ranks in fewer.values())
        for value, ranks in fewer.items():
            words = f"{name} is {value} there, {most} here" if not decided else f"{name} is {value}, not {most}"
            record = Record(source="agent", rank=ranks[0], words=f"{name}={value}")
            claims.append(
                Claim(what="disagree", ranks=tuple(ranks), record=record, of=tuple(values[most]), words=words)
            )
            odd |= set(ranks) if decided else set()
    return claims, tuple(sorted(odd))


def _twice(state: RankState) -> Claim:
    words = f"{SHARED_RANK}: {state.pid}, {state.facts[TWICE]}"
    record = Record(source="system", rank=state.rank, words=state.facts[TWICE])
    return Claim(what="system", ranks=(state.rank or 0,), record=record, words=words)


def _place_claims(state: RankState) -> tuple[Claim, ...]:
    """Return claims on what a rank that has not arrived waits in, if known, and where it is."""
    found = tuple(claim for claim in claims_of(state) if claim.what in ("waits", "at"))
    return found or (
        place_claim(Claim(what="at", ranks=(state.rank or 0,), record=_record(state)), shown_frame(state.stack)),
    )


def _record(state: RankState) -> Record:
    frame = shown_frame(state.stack)
    file, line = (frame.file, frame.line) if frame is not None else ("", 0)
    return Record(source="stack", path=file, line=line, rank=state.rank)


def _is_whole(states: Sequence[RankState], world: int) -> bool:
    """True if all ranks of the job should be on this host."""
    local = {s.local_world_size for s in states if s.local_world_size}
    return not local or max(local) >= world or any(map(alone, states))


def alone(state: RankState) -> bool:
    """True if torchrun's variables show a single host, whatever number of ranks the program names."""
    return state.environment.get("GROUP_WORLD_SIZE") == "1"
