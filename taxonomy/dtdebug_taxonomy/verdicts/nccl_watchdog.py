"""Finds the rank that differs in the messages of NCCL's watchdogs, by group.

A rank whose last call has a lower number never made the call that the others wait in. A rank that is behind in one
group and waits in another itself is not the end of the chain: then it is only known which rank waited where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.logs.tasks import job_size
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import MOST_RANKS, Alternative, CollectiveRef, Kind, Verdict, say, spell
from dtdebug_taxonomy.verdicts.absent_ranks import call_claim, name_in_program
from dtdebug_taxonomy.verdicts.disagreement import Side, disagreement
from dtdebug_taxonomy.verdicts.last_words import are_exception, last_line_claim, last_lines, telling_end
from dtdebug_taxonomy.verdicts.nccl_watchdog_lines import (
    GroupStatus,
    TimedOutCollective,
    WatchedGroup,
    watchdogs_by_group,
)

_OF_ALL = frozenset({"ALLREDUCE", "ALLGATHER", "_ALLGATHER_BASE", "REDUCE_SCATTER", "_REDUCE_SCATTER_BASE"})
"""Collectives that no rank completes before all have called them."""
_TIMED_OUT = ("Timeout at NCCL work", "Some NCCL operations have failed or timed out", "error or timeout) detected",
              "failure detected")  # fmt: skip
"""Other messages of a watchdog on its own time-out, also in a line whose rest was broken off."""
_SHOWN, _GROUPS = 8, 4
"""Maximum number of claims, and of groups, that are shown."""
_MANY = 4
"""A log covers all ranks if at least this many timed out per rank of which no line is seen."""


def watchdog_verdict(log: Log) -> Verdict | None:
    """Return the verdict that the watchdogs of all ranks allow; None without them."""
    groups = watchdogs_by_group(log)
    if len(groups) > 1 or any(w.group for watched in groups.values() for w in watched.waits.values()):
        return _of_several(groups)
    watched = next(iter(groups.values()), None)
    if watched is None:
        return None
    heard = {line.rank for line in log.lines if line.rank is not None} | {*log.around.printing}
    late = {line.rank for line in log.lines if line.rank is not None and any(t in line.body for t in _TIMED_OUT)}
    heard -= late | {other for rank in late for other in log.around.alike.get(rank, ())}
    heard |= _never_heard(log, watched, heard)
    return _behind(watched) or _left_in(watched) or _verdict_on_calls(watched) or _alike(log, watched, heard)


def _never_heard(log: Log, watched: WatchedGroup, heard: set[int]) -> set[int]:
    """Ranks of the job without any line, where nearly all others have timed out: a few, or the log is of some only."""
    if not (log.whole or log.around.printing):
        return set()
    known = {*watched.waits, *watched.status, *heard, *(line.rank for line in log.lines if line.rank is not None)}
    known |= {*log.around.printing}
    absent = {*range(max(min(job_size(log.lines, log.around), MOST_RANKS), max(known, default=-1) + 1))} - known
    return absent if len(absent) * _MANY <= len(watched.waits) else set()


def _of_several(groups: Mapping[str, WatchedGroup]) -> Verdict | None:
    """Return the verdict on several groups, each by its own numbers; a rank waiting in another group is stuck there."""
    waiting = sorted({rank for watched in groups.values() for rank in watched.waits})
    found = []
    for watched in groups.values():
        elsewhere = {rank for other in groups.values() if other is not watched for rank in other.waits}
        behind = _behind(watched)
        if behind is not None and elsewhere.isdisjoint(behind.waiting if behind.kind == "extra" else behind.culprits):
            found.append(behind)
        elif len({w.seq for w in watched.waits.values()}) == 1 and (apart := _verdict_on_calls(watched)) is not None:
            found.append(apart)
    return found[0] if len({v.culprits for v in found}) == 1 else _verdict_without_culprit(groups, waiting)


def _verdict_without_culprit(groups: Mapping[str, WatchedGroup], waiting: Sequence[int]) -> Verdict:
    """Return the verdict if only the waiting ranks of each group are known."""
    rows: dict[tuple[str, str], tuple[TimedOutCollective, list[int], WatchedGroup]] = {}
    for group, watched in groups.items():
        for rank, wait in sorted(watched.waits.items()):
            rows.setdefault((group, str(wait)), (wait, [], watched))[1].append(rank)
    said = [f"{spell(ranks, 8)} waited in {wait}{_at(watched, ranks)}" for wait, ranks, watched in rows.values()]
    claims = tuple(claim for watched in groups.values() for claim in _waiting(watched, sorted(watched.waits)))[:_SHOWN]
    first = next(iter(groups.values()))  # the places are those of all
    more = f" and {len(said) - _GROUPS} more" if len(said) > _GROUPS else ""
    calls = [f"{wait}{_at(watched, ranks)}" for wait, ranks, watched in rows.values()]
    summary = (
        f"{spell(waiting).capitalize()} timed out in {' and in '.join(calls[:_GROUPS])}; "
        "the log does not show who held it up."
        if len(waiting) == 1
        else f"Ranks of several groups timed out: {', '.join(said[:_GROUPS])}{more}; "
        "the log does not show which of them held up the others."
    )
    return Verdict(
        kind="not_understood",
        waiting=tuple(waiting),
        sites=tuple(first.sites[rank] for rank in waiting if rank in first.sites),
        confidence=0.5,
        summary=summary,
        claims=claims,
        evidence=texts(claims),
    )


def _behind(watched: WatchedGroup) -> Verdict | None:
    """Return the verdict on ranks that never made the call that others wait in."""
    first = min(w.seq for w in watched.waits.values())
    late = {rank: s for rank, s in watched.status.items() if rank not in watched.waits and 0 <= s.enqueued < first}
    if not late:
        return None
    culprits, ahead = tuple(sorted(late)), tuple(sorted(watched.waits))
    last = min(s.enqueued for s in late.values())
    claims = (
        *(_status_claim(rank, late[rank]) for rank in culprits[:_SHOWN]),
        *_waiting(watched, ahead),
    )
    call = watched.waits[ahead[0]]
    few = len(ahead) < len(culprits)
    their = f"{'Their' if len(culprits) > 1 else 'Its'} last call was #{last}"
    if few:
        summary = f"{spell(ahead, 8).capitalize()} waited in {call}{_at(watched, ahead)}, which "
        summary += f"{spell(culprits)} never called. {their}."
    else:
        summary = f"{spell(culprits).capitalize()} never called {call}{_at(watched, ahead)}; "
        summary += f"{spell(ahead, 8)} timed out waiting for {'it' if len(culprits) == 1 else 'them'}. {their}."
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


def _left_in(watched: WatchedGroup) -> Verdict | None:
    """Return the verdict on ranks held up in a call that the others have completed."""
    first = min(w.seq for w in watched.waits.values())
    late = tuple(sorted(rank for rank, w in watched.waits.items() if w.seq == first))
    ahead = tuple(sorted(watched.waits.keys() - {*late}))
    past = tuple(sorted(rank for rank, s in watched.status.items() if rank not in late and s.completed >= first))
    others = tuple(sorted({*ahead, *past}))
    call = watched.waits[late[0]]
    if not past or len(late) >= len(others) or any(watched.waits[rank].op not in _OF_ALL for rank in late):
        return None
    further = f"; {spell(ahead, 8)} waited in {watched.waits[ahead[0]]}" if ahead else ""
    return _verdict(
        "not_arrived",
        watched,
        (*_waiting(watched, late), *(_status_claim(rank, watched.status[rank]) for rank in past[:_SHOWN]),
         *_waiting(watched, ahead)),
        culprits=late,
        waiting=others,
        confidence=0.7,
        summary=f"{spell(late, 8).capitalize()} timed out in {call}{_at(watched, late)}, which "
        f"{say(past, 'have')} finished{further}.",
    )  # fmt: skip


def _verdict_on_calls(watched: WatchedGroup) -> Verdict | None:
    """Return the verdict on ranks that wait in different calls."""
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
    return disagreement(kind, sides, CollectiveRef(name_in_program(op), seq), watched.sites, claims, culprits=culprits)


def _alike(log: Log, watched: WatchedGroup, heard: set[int]) -> Verdict:
    """Return the verdict if all timed out in one call; ranks with other output only are then the suspects."""
    waiting = tuple(sorted(watched.waits))
    call = watched.waits[waiting[0]]
    silent = tuple(sorted(heard - set(waiting) - set(watched.status)))
    claims = _waiting(watched, waiting)
    where = _at(watched, waiting)
    if silent and are_exception(silent, waiting):
        ends = last_lines(log, silent, min((w.line for w in watched.waits.values() if w.line), default=0))
        return _verdict(
            "not_arrived",
            watched,
            (*map(last_line_claim, ends), *claims),
            culprits=silent,
            waiting=waiting,
            confidence=0.5,
            summary=f"{spell(silent, 8).capitalize()} printed no time-out{telling_end(silent, ends)}. "
            f"{spell(waiting, 8).capitalize()} timed out in {call}{where}.",
        )
    told = {rank: s for rank, s in watched.status.items() if rank not in watched.waits}
    called = tuple(sorted(rank for rank, s in told.items() if s.enqueued >= call.seq > s.completed))
    more = "all in the same call" if len(waiting) > 1 else "no other rank reported where it was"
    if called:
        more = f"{spell(called)} called it too and did not finish it"
    return _verdict(
        "not_understood",
        watched,
        (*claims, *(_status_claim(rank, told[rank]) for rank in called[:_SHOWN])),
        waiting=waiting,
        confidence=0.5,
        summary=f"{spell(waiting, 8).capitalize()} timed out in {call}{where}, {more}. "
        "The log does not show which rank or device held it up.",
    )


def _verdict(
    kind: Kind,
    watched: WatchedGroup,
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
        collective=CollectiveRef(name_in_program(op), seq),
        sites=tuple(watched.sites[rank] for rank in (*culprits, *waiting) if rank in watched.sites),
        confidence=confidence,
        summary=summary,
        claims=tuple(claims),
        evidence=texts(claims),
        alternatives=alternatives,
    )


def _waiting(watched: WatchedGroup, ranks: Iterable[int]) -> tuple[Claim, ...]:
    rows = [(rank, watched.waits[rank]) for rank in ranks]
    shown = [(rank, w) for rank, w in rows if w.line][:_SHOWN]
    return tuple(call_claim(rank, (w.op, w.seq, w.sizes), w.line, watched.sites.get(rank)) for rank, w in shown)


def _status_claim(rank: int, status: GroupStatus) -> Claim:
    words = f"last enqueued work: {status.enqueued}, last completed work: {status.completed}"
    record = Record(source="output", line=status.line, rank=rank, words=words)
    return Claim(what="printed", ranks=(rank,), words=words, record=record)


def _at(watched: WatchedGroup, ranks: Iterable[int]) -> str:
    site = next((watched.sites[rank] for rank in ranks if rank in watched.sites), None)
    return f" at {site.file.rsplit('/', 1)[-1]}:{site.line}" if site else ""
