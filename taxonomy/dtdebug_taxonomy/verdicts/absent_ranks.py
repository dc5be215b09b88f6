"""Ranks that did not come, as a monitored barrier and NCCL's desync report name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import CallSite, CollectiveRef, Verdict, say, spell
from dtdebug_taxonomy.stacks.frames import own_frame

_NOT_PASSED = re.compile(
    r"\[Rank (\d{1,6})\]: Ranks? (\d{1,6}(?:, ?\d{1,6}){0,2000}) failed to pass monitoredBarrier in (\d{1,12}) ms"
)
_REACHED = re.compile(
    r"Rank (\d{1,6}) successfully reached monitoredBarrier, but received errors while waiting for send/recv "
    r"from rank (\d{1,6})(?!\d)"
)
_DID_NOT_JOIN = re.compile(
    r"\[(\d{1,6}(?:, ?\d{1,6}){0,2000})\] finished collective #\d{1,18}, but didn.t join collective #(\d{1,18})"
)
_JOINED = re.compile(
    r"\[(\d{1,6}(?:, ?\d{1,6}){0,2000})\] (?:started|joined but didn.t finish) (?:collective #\d|(\w{1,40}))"
)
_UNFINISHED = re.compile(r"\[(\d{1,6}(?:, ?\d{1,6}){0,2000})\] joined but didn.t finish collective #(\d{1,18})")
_STARTED_AT = re.compile(r"#(\d{1,18}) started ranks:")
_OF_VICTIMS = ("", "SIGTERM", "SIGABRT")
"""Other ends of a rank that only waited: its own error, or the launcher."""
_NAMES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all_single",
}


def name_in_program(op: str) -> str:
    """Names in programs of operations that PyTorch prints in its own spelling."""
    return _NAMES.get(op, op.strip("_").lower())


def sites(log: Log) -> dict[int, CallSite]:
    """Rank -> the innermost line of the user's own in its last traceback; only ranks that are known."""
    found: dict[int, CallSite] = {}
    for raised in log.events.raised:
        frame = own_frame(raised.frames)
        if raised.rank is not None and frame is not None:
            found[raised.rank] = CallSite(raised.rank, frame.file, frame.line, frame.function)
    return found


def line_claim(line: Line, words: str, ranks: Iterable[int] = ()) -> Claim:
    """A claim that a line makes."""
    words = words[:200]
    return Claim(
        what="printed",
        ranks=tuple(ranks) or (() if line.rank is None else (line.rank,)),
        words=words,
        record=Record(source="output", line=line.number, rank=line.rank, words=words),
    )


def call_claim(rank: int, call: tuple[str, int | None, str], line: int, site: CallSite | None) -> Claim:
    """Operation a rank was in, from its line: (name as PyTorch spells it, number, arguments)."""
    op, seq, words = name_in_program(call[0]), call[1], call[2]
    told = f"{op}{'' if seq is None else f' #{seq}'}{f' of {words}' if words else ''}"
    return Claim(
        what="called",
        ranks=(rank,),
        op=op,
        seq=seq,
        words=words,
        file=site.file if site else "",
        line=site.line if site else 0,
        function=site.function if site else "",
        record=Record(source="output", line=line, rank=rank, words=told),
    )


def missing(log: Log, own: Sequence[PrintedException], where: Mapping[int, CallSite]) -> Verdict | None:
    """The verdict of a monitored barrier or of a desync report, or None. `own` are errors that ended ranks."""
    return _not_passed(log, own, where) or _did_not_join(log.lines) or _did_not_finish(log.lines) or _silent_first(log)


def _not_passed(log: Log, own: Sequence[PrintedException], where: Mapping[int, CallSite]) -> Verdict | None:
    absent: set[int] = set()
    said: list[Claim] = []
    waited = 0
    for line in log.lines:
        found = _NOT_PASSED.search(line.body) if "failed to pass" in line.body else None
        if found is None or (line.rank is not None and line.rank != int(found[1])):
            continue  # numbers of a group of some ranks only: which ranks of the job they are is not said
        ranks = ranks_listed(found[2])
        if not ranks <= absent:
            absent |= ranks
            said.append(line_claim(line, found[0]))
        waited = int(found[3])
    if not absent:
        return None
    present = _ranks_at_barrier(log.lines) - absent
    deaths = _deaths(log, own, absent)
    culprits = tuple(sorted(deaths or absent))
    how = "; ".join(deaths[rank][0] for rank in culprits[:3]) if deaths else "it was elsewhere"
    claims = (*(deaths[rank][1] for rank in culprits[:3] if rank in deaths), *said)[:8]
    return Verdict(
        kind="dead" if deaths else "not_arrived",
        culprits=culprits,
        waiting=tuple(sorted(present)),
        sites=tuple(where[rank] for rank in (*culprits, *sorted(present)) if rank in where),
        confidence=0.9 if deaths or len(absent) == 1 else 0.7,
        summary=f"{spell(absent, 8).capitalize()} did not reach a barrier within {waited / 1000:g} s: {how}.",
        claims=claims,
        evidence=texts(claims),
    )


def _ranks_at_barrier(rows: Sequence[Line]) -> set[int]:
    """Ranks that say that they came to the barrier: the first of the group by naming others, the rest themselves."""
    named = (
        _REACHED.search(line.body) or _NOT_PASSED.search(line.body) for line in rows if "onitoredBarrier" in line.body
    )
    return {int(found[1]) for found in named if found}


def _deaths(log: Log, own: Sequence[PrintedException], absent: set[int]) -> dict[int, tuple[str, Claim]]:
    """Rank -> (how it ended, the claim), of absent ranks that did not only wait."""
    found: dict[int, tuple[str, Claim]] = {}
    for r in own:
        if r.rank is not None and r.rank in absent:
            words = r.text[:160]
            record = Record(source="output", line=r.line, rank=r.rank, words=words)
            claim = Claim(what="raised", ranks=(r.rank,), words=words, record=record)
            found.setdefault(r.rank, (f"rank {r.rank} raised {words}", claim))
    for e in log.said.exits:
        if e.rank is not None and e.rank in absent and ((e.code or 0) > 1 or e.signal not in _OF_VICTIMS):
            how = e.signal or f"exit code {e.code}"
            record = Record(source="output", line=e.line, rank=e.rank, words=how)
            claim = Claim(what="ended", ranks=(e.rank,), words=how, record=record)
            found.setdefault(e.rank, (f"rank {e.rank} ended with {how}", claim))
    return found


def _did_not_join(rows: Sequence[Line]) -> Verdict | None:
    absent: set[int] = set()
    present: set[int] = set()
    said: list[Claim] = []
    seq = op = None
    for line in rows:
        if "collective #" not in line.body and "] started " not in line.body:
            continue
        if found := _DID_NOT_JOIN.search(line.body):
            absent |= ranks_listed(found[1])
            seq = int(found[2])
            said.append(line_claim(line, found[0]))
        elif found := _JOINED.search(line.body):
            present |= ranks_listed(found[1])
            op = op or found[2]
    if not absent or seq is None:
        return None
    waiting = tuple(sorted(present - absent))
    what = name_in_program(op) if op else "collective"
    return Verdict(
        kind="not_arrived",
        culprits=tuple(sorted(absent)),
        waiting=waiting,
        collective=CollectiveRef(what, seq),
        confidence=0.8,
        summary=f"{spell(absent, 8).capitalize()} did not join {what} #{seq}"
        + (f", in which {spell(waiting, 8)} {'wait' if len(waiting) > 1 else 'waits'}." if waiting else "."),
        claims=tuple(said[:8]),
        evidence=texts(said[:8]),
    )


def _did_not_finish(rows: Sequence[Line]) -> Verdict | None:
    """Ranks that are in a collective which the others have finished: these are in a later one, by the same report."""
    late: set[int] = set()
    ahead: set[int] = set()
    said: list[Claim] = []
    seq = at = 0
    op = ""
    for line in rows:
        if found := _UNFINISHED.search(line.body):
            late |= ranks_listed(found[1])
            seq = int(found[2])
            said.append(line_claim(line, found[0]))
        elif found := _STARTED_AT.search(line.body):
            at = int(found[1])
        elif late and at > seq and (found := _JOINED.search(line.body)):
            ahead |= ranks_listed(found[1]) - late
            op = op or found[2] or ""
            said.append(line_claim(line, f"#{at} {found[0]}"))
    if not late or len(ahead) <= len(late):
        return None
    culprits, waiting = tuple(sorted(late)), tuple(sorted(ahead))
    return Verdict(
        kind="not_arrived",
        culprits=culprits,
        waiting=waiting,
        collective=CollectiveRef(name_in_program(op) if op else "collective", at),
        confidence=0.6,
        summary=f"{spell(culprits, 8).capitalize()} joined collective #{seq} and did not finish it, while "
        f"{say(waiting, 'are')} in #{at}: {say(culprits, 'have')} called another one there, or "
        f"{'its device is' if len(culprits) == 1 else 'their devices are'} behind.",
        claims=tuple(said[:8]),
        evidence=texts(said[:8]),
    )


def _silent_first(log: Log) -> Verdict | None:
    """All wait for the first rank, and it has said nothing: it never came, else it would have named others."""
    found = [
        (line, row) for line in log.lines if "successfully reached" in line.body and (row := _REACHED.search(line.body))
    ]
    accused = {int(row[2]) for _, row in found}
    waiting = {int(row[1]) for _, row in found}
    whole = all(line.rank == int(row[1]) for line, row in found)  # only prefixes show that a rank is silent
    if len(accused) != 1 or not whole or accused & {r.rank for r in log.events.raised}:
        return None
    rank = min(accused)
    claims = tuple(line_claim(line, row[0]) for line, row in found[:8])
    return Verdict(
        kind="not_arrived",
        culprits=(rank,),
        waiting=tuple(sorted(waiting)),
        confidence=0.6,
        summary=f"Rank {rank} did not reach a barrier where {spell(waiting, 8)} waited for it.",
        claims=claims,
        evidence=texts(claims),
    )


def ranks_listed(text: str) -> set[int]:
    """The ranks of `0, 2, 3`."""
    return {int(part) for part in text.split(",")}
