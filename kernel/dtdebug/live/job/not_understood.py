"""Claims about hung ranks that no record explains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dtdebug.recorded.flight_recorder.ended_ranks import ending
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import RankState, Verdict, say, spell
from dtdebug_taxonomy.stacks.claims_of_state import claims_of
from dtdebug_taxonomy.stacks.frames import call_sites, place_claim, shown_frame


def not_understood(
    states: Sequence[RankState], still: Sequence[RankState], progress: Mapping[int, str], seconds: float
) -> Verdict:
    """Return a verdict on ranks without explained progress: places, waits, differences and system state.

    `still` are the ranks that were not seen to move, for `seconds`.
    """
    living = [s for s in states if s.alive is not False and s.rank is not None]
    dark = tuple(s.rank for s in living if s.alive is None and s.pid and s.rank is not None)
    unseen = tuple(s.rank for s in living if s.alive is None and not s.pid and s.rank is not None)
    ranks = tuple(s.rank for s in still if s.rank is not None)
    stuck = {*ranks}
    twice = [s for s in still if progress.get(s.rank or 0) == "stuck"]
    claims: list[Claim] = []
    if twice:
        claims.append(claim_on("unmoved", twice, words="the same place and counters in two looks", seconds=seconds))
    claims += places(still)
    claims += counters(still)
    for state in still[:64]:
        claims += [c for c in claims_of(state) if c.what == "system" or (c.what == "waits" and c.words)]
    claims += [claim_on("moved", [s]) for s in living if s.rank not in stuck and s.alive is not None][:8]
    claims += [ending(s) for s in states if s.alive is False][:8]
    rows = [_short(c) for c in claims if c.what in ("waits", "at")][:3]
    known = f": {'; '.join(rows)}" if rows else ""
    head = f"{say(ranks, 'make').capitalize()} no progress, and no record explains it{known}." if ranks else ""
    if (lock := _lock_of_nobody(still)) and len(twice) == len(still) == len(living):
        left = "another process does, or one that has ended has left it"
        head = f"{say(ranks, 'wait').capitalize()} for the lock of {lock}, and none of them holds it: {left}."
    if ranks and not twice:
        head = f"Whether {say(ranks, 'make')} progress is not known: read once{known}."
    silent = f"{spell(dark, 8).capitalize()} gave no answer." if dark else ""
    missing = f"No process of {spell(unseen, 8)} was seen." if unseen else ""
    return Verdict(
        kind="not_understood",
        waiting=ranks,
        sites=call_sites(still),
        confidence=0.0,
        summary=" ".join(filter(None, (head, silent, missing))),
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _lock_of_nobody(states: Sequence[RankState]) -> str:
    """Return the only file whose lock all of these wait for, if no observed rank holds it; else ""."""
    locks = {s.waiting.path if s.waiting and s.waiting.kind == "lock" and not s.waiting.pid else "" for s in states}
    return locks.pop() if len(locks) == 1 else ""


def places(states: Iterable[RankState]) -> list[Claim]:
    """Return claims on where ranks are, one for each place, the largest group first."""
    found: dict[tuple[object, ...], list[RankState]] = {}
    for s in states:
        frame = shown_frame(s.stack)
        if frame is not None:
            p = s.pending
            key = (frame.file, frame.line, frame.function, p and (p.op, p.seq, p.group))
            found.setdefault(key, []).append(s)
    claims = []
    for rows in sorted(found.values(), key=len, reverse=True):
        s = rows[0]
        frame, inner, p = shown_frame(s.stack) or s.stack[-1], s.stack[-1], s.pending
        record = Record(source="stack", path=frame.file, line=frame.line, rank=s.rank, words=frame.code)
        call = {"op": p.op, "seq": p.seq, "group": _group(s, p.group)} if p is not None else {}
        claim = Claim(
            what="waits" if p is not None else "at",
            ranks=tuple(r.rank for r in rows if r.rank is not None),
            record=record,
            words="" if p is not None or inner == frame else f"in {inner.function} of {inner.file}:{inner.line}",
            seconds=max(map(waited_seconds, rows)) or None,
            **call,  # type: ignore[arg-type]
        )
        claims.append(place_claim(claim, frame))
    return claims


def counters(states: Iterable[RankState]) -> list[Claim]:
    """Return claims on the number of operations begun on a group, if ranks differ in it."""
    found: dict[str, dict[int, list[int]]] = {}
    for s in states:
        for g in s.groups:
            if g.enqueued is not None and s.rank is not None:
                found.setdefault(_group(s, g.name), {}).setdefault(g.enqueued, []).append(s.rank)
    return [
        Claim(
            what="counted",
            ranks=tuple(ranks),
            record=Record(source="agent", rank=ranks[0]),
            group=name,
            count=count,
        )
        for name, counts in found.items()
        if len(counts) > 1
        for count, ranks in sorted(counts.items())
    ][:16]


def _group(state: RankState, name: str) -> str:
    """Return the display name of a group."""
    group = next((g for g in state.groups if g.name == name), None)
    if group is not None and group.ranks and len(group.ranks) == state.world_size:
        return "world"
    desc = group.desc if group is not None else ""
    return desc or (f"group {name}" if name else "")


def claim_on(what: str, states: Sequence[RankState], *, words: str = "", seconds: float | None = None) -> Claim:
    """Return a claim on these ranks, on the record for claims of its kind."""
    ranks = tuple(s.rank for s in states if s.rank is not None)
    source = "exit" if what == "left" else "system" if what == "moved" else "stack"
    record = Record(source=source, rank=ranks[0] if ranks else None, words=words)  # type: ignore[arg-type]
    return Claim(what=what, ranks=ranks, record=record, words=words, seconds=seconds)  # type: ignore[arg-type]


def _short(claim: Claim) -> str:
    return f"{claim.text[:1].lower()}{claim.text[1:].rstrip('.')}"


def waited_seconds(state: RankState) -> float:
    """Return the seconds that the rank has been in its operation, by its own clock; 0 if unknown."""
    since = state.pending.since if state.pending is not None else None
    return max(0.0, state.time - since) if since and state.time else 0.0
