"""Builds a job from its parts: the first failure over all ranks, followers, silent ranks, the machine.

The telling lines are merged by time into one output, each prefixed with its rank; the general parser of printed
failures interprets them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from dtdebug.recorded.job_logs import (
    assign_ranks,
    before_scheduler,
    clock_skew,
    ended_from_outside,
    hardware_events,
    odd_rank,
    silent_ranks,
    slowness,
    standing_ranks,
)
from dtdebug.recorded.job_logs.first_failures import FirstFailure, first_failures, followers
from dtdebug.recorded.job_logs.merged_output import MergedOutput
from dtdebug.recorded.job_logs.new_lines import NewShape
from dtdebug.recorded.job_logs.part import Part, Stream, is_cut_short
from dtdebug.recorded.job_logs.slowness import Slowness
from dtdebug.recorded.job_logs.stream_summary import BELOW
from dtdebug.recorded.job_logs.surroundings import of_ranks
from dtdebug.recorded.log_files.training_share import Share
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.logs import log_end, prefixes
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.exits import Exit
from dtdebug_taxonomy.logs.log import Outcome, outcome, read_output, surrounded
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import MOST_RANKS, Verdict, say, spell
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts.from_log import verdict_of_log


def without_followers(verdict: Verdict | None, by_rank: dict[int, Stream]) -> Verdict | None:
    """Remove ranks accused only for their end, though their telling lines equal those of ranks that are not accused.

    Only some ranks of a kind are read; of the others only the end is known, and a launcher's report names each of them.
    """
    if verdict is None:
        return None
    accused = set(verdict.culprits)
    read = {s.kind for rank, s in by_rank.items() if s.told and rank not in accused}
    read -= {s.kind for rank, s in by_rank.items() if s.told and rank in accused}
    follow = {r for r in accused if r in by_rank and not by_rank[r].told and by_rank[r].kind in read}
    if not follow:
        return verdict
    rest = tuple(rank for rank in verdict.culprits if rank not in follow)
    if not rest:
        return None
    before, after = spell(verdict.culprits, 8), spell(rest, 8)
    summary = verdict.summary.replace(before[:1].upper() + before[1:], after[:1].upper() + after[1:], 1)
    return msgspec.structs.replace(
        verdict, culprits=rest, waiting=tuple(sorted(follow | set(verdict.waiting))), summary=summary
    )


def widen_verdict(verdict: Verdict, by_rank: dict[int, Stream], laid: MergedOutput) -> Verdict:
    """Add the ranks whose telling lines equal those of the ranks that were read, and resolve the claims' places."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for what, ranks in (("culprit", verdict.culprits), ("waits", verdict.waiting)):
        for rank in ranks:
            if rank in by_rank and by_rank[rank].kind:
                kinds[by_rank[rank].kind].add(what)
    culprits, waiting = set(verdict.culprits), set(verdict.waiting)
    for rank, s in by_rank.items():
        if rank in culprits or rank in waiting or s.told:
            continue
        of = kinds.get(s.kind, set())
        if of == {"culprit"}:
            culprits.add(rank)
        elif "waits" in of:
            waiting.add(rank)
    claims = tuple(_relocate_claim(claim, laid.places) for claim in verdict.claims)
    more, fewer = spell(tuple(sorted(culprits)), 8), spell(verdict.culprits, 8)
    summary = verdict.summary
    if culprits != set(verdict.culprits):
        summary = summary.replace(f"{fewer[:1].upper()}{fewer[1:]}", f"{more[:1].upper()}{more[1:]}", 1)
    before, after = verdict.waiting, tuple(sorted(waiting - culprits))
    if after != before and before:
        for one, other in ((say(before, "fail"), say(after, "fail")), (spell(before, 8), spell(after, 8))):
            summary = summary.replace(one, other, 1).replace(one.capitalize(), other.capitalize(), 1)
    return msgspec.structs.replace(
        verdict,
        culprits=tuple(sorted(culprits)),
        waiting=after,
        summary=summary,
        claims=claims,
        evidence=texts(claims) or verdict.evidence,
    )


def _relocate_claim(claim: Claim, places: Sequence[tuple[str, int]]) -> Claim:
    record = claim.record
    if record.source != "output" or record.path or not 0 < record.line <= len(places):
        return claim
    file, line = places[record.line - 1]
    return msgspec.structs.replace(claim, record=msgspec.structs.replace(record, path=file, line=line))


def stopped_logs(streams: Sequence[Stream], ranks: int) -> Verdict | None:
    """Return the verdict on logs that stop while training; None if one of them shows a sign of an end."""
    stops = [s for s in streams if s.stops and s.progress]
    last = max(stops, key=lambda s: (s.step or 0, -(s.rank or 0)), default=None)
    if last is None or last.progress is None or last.step is None or any(_ends_after(s, last) for s in streams):
        return None
    printed = prefixes.without_prefixes(last.progress.text)
    clock = log_end.clock_in(printed.time, printed.body)
    says = last.standing.says if last.standing is not None else ""
    return log_end.stop_verdict(last.step, clock, ranks, last.progress.line, last.file, says=says)


def _ends_after(s: Stream, last: Stream) -> bool:
    """True if a stream shows a sign of an end that is not known to be earlier than the last step of another."""
    step = last.progress
    if not s.ends or step is None:
        return False
    if s.file == last.file:
        return s.line > step.line
    return s.step is not None or s.last is None or step.time is None or s.last >= step.time


_EVENTS = 256
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60}(?:Error|Exception|Interrupt|Exit)(?:: |\s*\Z)")
_LATE = "Which rank failed first is not known: not all that they printed was read in time."
_ABSENT = 2
"""Silent ranks per printing rank from which printing is the exception."""


class RankSpan(NamedTuple):
    """Times of a rank's output, and the rank's role in the failure."""

    rank: int
    host: str
    began: float | None
    told: float | None
    """Time of its first telling line."""
    last: float | None
    step: int | None
    role: str
    """`first`, `then` or `stopped`; empty if it is not known to have failed."""
    file: str
    line: int


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the logs of a job report."""

    ranks: int
    hosts: int
    expected: int = 0
    """Size of the job, if NCCL prints it."""
    files: int = 0
    size: int = 0
    unread: tuple[str, ...] = ()
    share: Share = Share()
    """Share of the logs that is understood."""
    first: tuple[FirstFailure, ...] = ()
    cascade: tuple[int, ...] = ()
    cascade_text: str = ""
    cascade_time: float | None = None
    silent: tuple[silent_ranks.SilentRank, ...] = ()
    absent: tuple[int, ...] = ()
    """Ranks below the job's size without any line."""
    slowness: Slowness = Slowness()
    behind: tuple[tuple[int, int, int], ...] = ()
    """(rank, its last step, the last step of most ranks)."""
    hardware: tuple[Event, ...] = ()
    clocks: tuple[tuple[str, float], ...] = ()
    """(host, seconds that its clock is ahead of the others); all times are corrected by it."""
    is_completed: bool = False
    """A log says that the training was completed, and no rank failed."""
    went_on: int | None = None
    """Last step of training, if no rank failed and no log ends in a failure."""
    ended: Event | None = None
    """Event that ended the job from outside, if no rank failed before."""
    exception: tuple[str, int, str] | None = None
    """File, number and text of the last line of an exception that ends a log and that nothing explains."""
    restarts: int = 0
    cut: tuple[tuple[str, int], ...] = ()
    """(file, first line) of the last run in each file that holds earlier ones above it."""
    verdict: Verdict | None = None
    snapshot: Snapshot = Snapshot()
    new: tuple[NewShape, ...] | None = None
    """Lines that a healthy run did not print; None without a run to compare with."""
    spans: tuple[RankSpan, ...] = ()
    """Each rank from its first line to its last, sorted by rank."""
    places: tuple[tuple[str, int], ...] = ()
    """(file, line) of each line of the snapshot's output."""

    @property
    def tells_more(self) -> bool:
        """True if something is wrong besides what a rank printed as its failure: an end, silence, slowness, a host."""
        named = self.verdict is not None and self.verdict.names_ranks
        broken = any(event.role == "root" for event in self.hardware)
        return bool(self.ended or self.silent or self.behind or named or broken or self.slowness.is_slow)


def view(part: Part) -> Job:  # noqa: PLR0915 - the stages, in their order
    """Return the job of a part that holds all of it."""
    part = clock_skew.in_year(part)
    off = clock_skew.clocks(part.streams)
    part = clock_skew.in_time(part, off)
    streams = assign_ranks.resolve_ranks(
        [s for s in part.streams if s.rank is None or 0 <= s.rank < MOST_RANKS], part.nodes
    )
    last = max((s.attempt for s in streams), default=0)
    now = _of_last_run([s for s in streams if s.attempt == last or s.rank is None])
    by_rank = assign_ranks.by_rank(now)
    reports = hardware_events.assign_ranks(part.hardware, by_rank)
    done = {s.file: s.done for s in sorted(now, key=lambda s: s.done) if s.done}
    end = ended_from_outside.candidate([e for e in reports if not 0 < done.get(e.file, 0) < e.line])
    hardware = tuple(e for e in reports if e.role != "end")
    laid = MergedOutput(now, hardware)
    snapshot = Snapshot(output=laid.text, source="the job's logs")
    on_until = silent_ranks.on_until(now)

    def is_outlived(raised: PrintedException) -> bool:
        latest = laid.until[raised.line - 1] if 0 < raised.line <= len(laid.until) else None
        early = latest is not None and on_until is not None and latest < on_until and not died(raised)
        follows = ended_from_outside.follows(end, laid.time(raised.line))
        return early or follows or laid.below(raised.handled, raised.line)

    def died(raised: PrintedException) -> bool:
        """True if its rank printed steps until shortly before the exception, and none after it."""
        own = by_rank.get(raised.rank) if raised.rank is not None else None
        (file, line), time = laid.place(raised.line), laid.time(raised.line)
        if time is None and 0 < raised.line <= len(laid.until):
            time = laid.until[raised.line - 1]
        return own is not None and own.file == file and silent_ranks.stepped_until(own, line, time)

    def later(end: Exit) -> bool:
        (file, line), own = laid.place(end.line), by_rank.get(end.rank) if end.rank is not None else None
        trained = max((s.progress.line for s in now if s.file == file and s.progress is not None), default=0)
        return own is not None and own.file == file and min(own.line, trained) > line + BELOW

    world = max((s.world for s in streams), default=0)
    around = of_ranks(by_rank, world)
    found = outcome(surrounded(read_output(snapshot), around), is_outlived, later)
    end = end or ended_from_outside.by_hand(found, laid)
    verdict = verdict_of_log(snapshot, _exclusive, is_outlived, later, around)
    verdict = without_followers(verdict, by_rank)
    by_rank = _correct_hosts(by_rank, found)
    reported = ended_from_outside.reported_before(end, found, now, laid.place)
    over = not reported and ended_from_outside.over(end, found, by_rank, now, laid.place)
    gone = {r.rank for r in found.own} | {e.rank for e in found.exits}
    well = over or (bool(done) and not gone)
    left = () if well else silent_ranks.left_behind(by_rank, gone)
    silent = () if well else left or silent_ranks.silent(by_rank, found, on_until)
    absent = _absent(by_rank, world)
    if over and end is not None:
        verdict = Verdict(kind="none", summary=ended_from_outside.summary(end, now))
    elif end is not None and reported:
        verdict = before_scheduler.verdict(reported, end, len(by_rank))
    elif well and (verdict is None or not verdict.culprits):
        pass  # a completed run: how its ranks end says nothing
    elif verdict is None or not verdict.culprits:
        verdict = (
            hardware_events.machine_verdict(hardware, by_rank)
            or (None if found.own else silent_ranks.of_silent(silent, by_rank))
            or (None if found.own else odd_rank.quiet(by_rank, absent, found) or odd_rank.alone(by_rank))
            or verdict
        )
    elif not found.own and odd_rank.as_all(verdict.culprits, by_rank) and len(verdict.culprits) * 2 < len(by_rank):
        verdict = silent_ranks.of_silent(silent, by_rank) or odd_rank.quiet(by_rank, absent, found) or verdict
    elif set(verdict.culprits) <= set(verdict.waiting):
        verdict = hardware_events.machine_verdict(hardware, by_rank) or verdict
    if (verdict is None or not verdict.names_ranks) and not (well or end or found.own or found.exits or silent):
        verdict = standing_ranks.verdict(by_rank) or verdict
    if verdict is not None and verdict.kind == "not_arrived":
        silent = silent or silent_ranks.quiet(verdict.culprits, by_rank)
    verdict = widen_verdict(verdict, by_rank, laid) if verdict is not None else None
    hardware = hardware_events.of_culprits(hardware, verdict, by_rank)
    first = first_failures(found, verdict, laid, by_rank, hardware)
    slow = slowness.slowness(by_rank)
    failed = first or silent or end or any(s.end for s in now)
    snapshot = msgspec.structs.replace(
        snapshot,
        verdict=verdict,
        late=() if failed else slowness.late(slow),
        notes=silent_ranks.notes(silent, () if verdict is None else verdict.culprits),
    )
    cascade, words, time = followers(found, verdict, by_rank, laid)
    job = Job(
        ranks=max(assign_ranks.count(now), len({e.rank for e in found.exits if e.rank is not None})),
        hosts=len({s.host for s in by_rank.values() if s.host} or {s.host for s in streams if s.host}),
        expected=world,
        files=part.files,
        size=part.size,
        unread=tuple(part.unread),
        share=Share(part.looked, part.known),
        first=first,
        cascade=cascade,
        cascade_text=words,
        cascade_time=time,
        silent=silent,
        absent=absent,
        slowness=slow,
        behind=() if well and not over else silent_ranks.behind(by_rank, {s.rank for s in silent}),
        hardware=hardware[:_EVENTS],
        clocks=tuple(sorted(off.items(), key=lambda row: -abs(row[1]))),
        is_completed=bool(done) and not (first or silent or end or found.exits),
        went_on=_went_on(now, first, verdict, silent),
        ended=end if over else None,
        exception=next((_place(s) for s in now if _ends_in_exception(s)), None) if not (well or verdict) else None,
        restarts=last,
        cut=tuple(dict.fromkeys((s.file, s.begin) for s in now if s.begin)),
        verdict=verdict,
        snapshot=snapshot,
        spans=_spans(by_rank, first, cascade, silent),
        places=laid.places,
    )
    if is_cut_short(part):
        return _without_ranks(job)
    is_open = job.went_on is not None and not (over or verdict or slow.is_slow)
    stop = stopped_logs(now, max(len(by_rank), world)) if is_open else None
    return (
        job
        if stop is None
        else msgspec.structs.replace(job, verdict=stop, snapshot=msgspec.structs.replace(snapshot, verdict=stop))
    )


def _of_last_run(streams: list[Stream]) -> list[Stream]:
    """Leave out the printers that ended before the last run began, where files hold several runs."""
    began = min((s.began for s in streams if s.begin and s.began is not None), default=None)
    return streams if began is None else [s for s in streams if s.begin or s.last is None or s.last >= began]


def _without_ranks(job: Job) -> Job:
    """Return a job that accuses no rank: ranks that were left out may have failed first, or gone on.

    An end from outside is told by its line, also if others were left out.
    """
    verdict = job.verdict
    if verdict is not None and verdict.names_ranks and job.ended is None:
        verdict = Verdict(kind="not_understood", summary=_LATE)
    snapshot = msgspec.structs.replace(job.snapshot, verdict=verdict, late=(), notes=())
    return msgspec.structs.replace(
        job, verdict=verdict, snapshot=snapshot, first=(), silent=(), absent=(), behind=(), slowness=Slowness()
    )


def _correct_hosts(by_rank: dict[int, Stream], found: Outcome) -> dict[int, Stream]:
    """Set the hosts that the launcher reports for ended ranks, which are more reliable than the path of a log."""
    hosts = {e.rank: e.host for e in found.exits if e.host and e.rank is not None}
    moved = {r: hosts[r] for r, s in by_rank.items() if r in hosts and not _same(hosts[r], s.host)}
    wrong = {(by_rank[r].file, by_rank[r].host) for r in moved}
    return {
        rank: msgspec.structs.replace(s, host=moved.get(rank, ""))
        if rank in moved or ((s.file, s.host) in wrong and rank not in hosts)
        else s
        for rank, s in by_rank.items()
    }


def _absent(by_rank: dict[int, Stream], world: int) -> tuple[int, ...]:
    """Return the ranks without any line; empty if only one rank's log is here or one rank per node prints."""
    absent = tuple(sorted(set(range(_size(set(by_rank), world))) - set(by_rank)))[:MOST_RANKS]
    return () if len(by_rank) == 1 or len(absent) > _ABSENT * len(by_rank) else absent


def _same(host: str, other: str) -> bool:
    return assign_ranks.short(host) == assign_ranks.short(other)


def _spans(
    by_rank: dict[int, Stream],
    first: Sequence[FirstFailure],
    cascade: Sequence[int],
    silent: Sequence[silent_ranks.SilentRank],
) -> tuple[RankSpan, ...]:
    roles = {
        **dict.fromkeys(cascade, "then"),
        **dict.fromkeys((s.rank for s in silent), "stopped"),
        **{row.rank: "first" for row in first if row.rank is not None},
    }
    return tuple(
        RankSpan(rank, s.host, s.began, s.first, s.last, s.step, roles.get(rank, ""), s.file, s.line)
        for rank, s in sorted(by_rank.items())
    )


def _went_on(
    streams: Sequence[Stream],
    first: Sequence[FirstFailure],
    verdict: Verdict | None,
    silent: Sequence[silent_ranks.SilentRank],
) -> int | None:
    named = verdict is not None and verdict.names_ranks
    steps = [s.step for s in streams if s.step is not None]
    # if a launcher reported a failure before its ranks trained in the same log, that was an earlier program
    trained = {s.file: s.progress.line for s in sorted(streams, key=_progress) if s.progress is not None}
    ends = [s for s in streams if s.end and (s.rank is not None or trained.get(s.file, 0) <= _spoke(s) + BELOW)]
    if first or silent or named or not steps or ends or any(map(_ends_in_exception, streams)):
        return None
    return max(steps)


def _ends_in_exception(s: Stream) -> bool:
    """True if a stream has no step below the last line of an exception, with or without its traceback."""
    last = s.ending
    body = "" if last is None else prefixes.without_prefixes(last.text).body
    return last is not None and last.line > _progress(s) and _EXCEPTION.match(body) is not None


def _place(s: Stream) -> tuple[str, int, str] | None:
    return None if s.ending is None else (s.file, s.ending.line, prefixes.without_prefixes(s.ending.text).body)


def _progress(s: Stream) -> int:
    return 0 if s.progress is None else s.progress.line


def _spoke(s: Stream) -> int:
    """Return the line of its last telling line."""
    return s.told[-1].line if s.told else s.line


def _exclusive(file: str, one: int, other: int) -> bool | None:
    return None


def _size(ranks: set[int], world: int) -> int:
    """Return the minimum size of the job: as printed by NCCL, else one more than the highest rank seen."""
    return min(max(world, max(ranks, default=-1) + 1), MOST_RANKS)
