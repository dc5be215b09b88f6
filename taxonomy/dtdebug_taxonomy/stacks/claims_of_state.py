"""Derives claims from one observation of a rank: what it waits in, where, and what the system shows."""

from __future__ import annotations

from msgspec.structs import replace

from dtdebug_taxonomy.model.claims import Claim, Record, Source
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.model.waiting import ACTIVE, Waiting, phrase
from dtdebug_taxonomy.stacks.frames import own_frame


def claims_of(state: RankState) -> tuple[Claim, ...]:
    """Return the claims on one rank, strongest first: its wait, its other threads, the system's figures.

    Empty for a process without a rank, and for one without data.
    """
    if state.rank is None:
        return ()
    own = own_frame(state.stack) or (state.stack[-1] if state.stack else None)
    found = [
        claim for claim in (_main(state, state.rank, own), *_thread_claims(state, state.rank)) if claim is not None
    ]
    if state.system:
        words = ", ".join(f"{name} {value}" for name, value in state.system.items())
        record = Record(source="system", path=f"/proc/{state.pid}", rank=state.rank, words=words)
        found.append(Claim(what="system", ranks=(state.rank,), record=record, words=words))
    return tuple(found)


def _main(state: RankState, rank: int, own: Frame | None) -> Claim | None:
    """Return the claim on the main thread: its wait, else the operation, else its place."""
    file, line, function = (own.file, own.line, own.function) if own else ("", 0, "")
    w, pending = state.waiting, state.pending
    if w is not None and w.kind in ACTIVE and own is not None:
        return Claim(
            what="at",
            ranks=(rank,),
            record=w.record,
            file=file,
            line=line,
            function=function,
            words=f"it is {phrase(w)}",
        )
    if w is not None and not (w.kind == "collective" and pending is not None):
        return _waits(w, rank, phrase(w), state, file=file, line=line, function=function)
    record = Record(source=_source(state), path=file, line=line, rank=rank, words=own.code if own else "")
    if pending is not None:
        return Claim(
            what="waits",
            ranks=(rank,),
            record=record,
            op=pending.op,
            seq=pending.seq,
            group=_group(state, pending.group),
            file=file,
            line=line,
            function=function,
            seconds=_seconds_since(pending.since, state),
        )
    if own is None:
        return None
    return Claim(what="at", ranks=(rank,), record=record, file=file, line=line, function=function)


def _waits(
    w: Waiting, rank: int, words: str, state: RankState, *, file: str = "", line: int = 0, function: str = ""
) -> Claim:
    return Claim(
        what="system" if w.kind in ACTIVE else "waits",
        ranks=(rank,),
        record=w.record,
        of=() if w.rank is None or w.rank == rank else (w.rank,),
        file=file,
        line=line,
        function=function,
        words=words,
        seconds=_seconds_since(w.since, state),
    )


def _thread_claims(state: RankState, rank: int) -> list[Claim]:
    """Return claims on the other threads and child processes of the rank."""
    found = []
    for w in state.beside:
        who = f"its thread {w.thread}" if w.thread else "another of its processes"
        place = f" at {w.file}:{w.line}{f' in {w.function}' if w.function else ''}" if w.file else ""
        verb = "is" if w.kind in ACTIVE else "waits"
        words = f"{who}{place} {verb} {phrase(replace(w, file=''))}"
        found.append(Claim(what="system", ranks=(rank,), record=w.record, words=words))
    return found


def _group(state: RankState, name: str) -> str:
    """Return a group's name in its program; PyTorch's default group is the world."""
    desc = next((group.desc for group in state.groups if group.name == name), "")
    return "world" if name == "0" or desc == "default_pg" else desc or name


def _source(state: RankState) -> Source:
    """Return the source of the stack: the agent's, from inside, or one read from outside."""
    return "stack" if state.roads.get("py-spy") == "ok" or state.roads.get("faulthandler") == "ok" else "agent"


def _seconds_since(since: float | None, state: RankState) -> float | None:
    """Return the seconds until the observation, by the rank's own clock."""
    return max(0.0, state.time - since) if since is not None and state.time is not None else None
