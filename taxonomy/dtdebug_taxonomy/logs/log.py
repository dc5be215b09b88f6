"""Decides what ended each process that prints a log: its own exception, a lost peer, or an exit without either.

An exception after which the program continued did not end it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import msgspec

from dtdebug_taxonomy.logs import event_reader, exits, lines, message_detail
from dtdebug_taxonomy.logs.child_processes import child_of
from dtdebug_taxonomy.logs.completion import completed_at
from dtdebug_taxonomy.logs.events import Events, PrintedException
from dtdebug_taxonomy.logs.exception_roles import Role, raised_by_user, reports_child, role_of
from dtdebug_taxonomy.logs.exits import LAUNCHER, Exit, Exits
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.tasks import NO_SURROUNDINGS, Surroundings
from dtdebug_taxonomy.model.ranks import CallSite, Frame
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.stacks.frames import is_library, own_frame

_WRAPPERS = frozenset({
    "ActorDiedError", "BaseExceptionGroup", "CheckpointException", "ControllerError", "ExceptionGroup",
    "RayActorError", "RayTaskError", "TrainingFailedError", "TuneError", "WorkerGroupError",
})  # fmt: skip
"""Classes that only hold what others raised."""
_KILLS = frozenset({"SIGKILL", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE"})
"""Signals that neither launchers send at once nor watchdogs cause."""
_TRAINS = 2
"""Minimum lines of progress of one printer that show that training continues."""
_ON, _WITNESSES = 5, 64
"""Minimum lines of progress of a rank that show that no other one has ended, and maximum number of such ranks."""
_LONG = 24
"""Lines of progress that one printer does not print any more after a rank has ended."""
_JOINS = frozenset({"init_process_group", "init_distributed"})
"""Functions in which a rank joins the job: none is past it before all have joined."""
_LAUNCHERS = (
    "/accelerate/commands/", "/accelerate/launchers.py", "/deepspeed/launcher/", "/horovod/runner/",
    "/torch/distributed/launcher/", "/torch/distributed/run.py", "/torch/multiprocessing/spawn.py",
)  # fmt: skip
"""Files in which launchers raise that one of their processes failed."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Ends of the processes that print a log."""

    own: tuple[PrintedException, ...] = ()
    """Terminal exceptions of the ranks' own code, in the order of the output; at most one per rank."""
    echoes: tuple[PrintedException, ...] = ()
    """Terminal exceptions that report a lost peer."""
    handled: tuple[PrintedException, ...] = ()
    """Exceptions after which the rank continued."""
    exits: tuple[Exit, ...] = ()
    """Ends of ranks without an exception that no other failure explains."""
    launched: bool = False
    """True if a launcher of several processes printed something."""
    doubtful: bool = False
    """True if the ranks of `own` lost a peer later, which nothing else explains: they may have continued until then."""
    interrupted: tuple[PrintedException, ...] = ()
    """Exceptions of processes that were interrupted by hand."""


@dataclass(frozen=True, eq=False)
class Log:
    """A printed output, parsed."""

    lines: tuple[Line, ...]
    events: Events
    said: Exits
    """Ends of processes, according to launchers, schedulers and watchdogs."""
    first: tuple[int, ...]
    """Index of the first line of each attempt except the first."""
    around: Surroundings = NO_SURROUNDINGS
    whole: bool = True
    """No line was left out."""

    @cached_property
    def outcome(self) -> Outcome:
        """Ends of the ranks, according to the log alone."""
        return outcome(self)


def read_output(snapshot: Snapshot) -> Log:
    """Return the parsed output of a snapshot; line numbers are those of the whole log."""
    return _read(snapshot.output, snapshot.first_lines, snapshot.source)


@lru_cache(maxsize=2)
def _read(output: str, first_lines: tuple[tuple[int, int], ...], source: str) -> Log:
    printed = lines.split_lines(output, Snapshot(first_lines=first_lines).true_line, source)
    happened = event_reader.find_events(printed)
    said = exits.rank_tasks(exits.of_lines(printed, happened), printed)
    return Log(tuple(printed), happened, said, happened.restarts, whole=not first_lines)


def surrounded(log: Log, around: Surroundings) -> Log:
    """Return the log of a job of which more is known than its lines."""
    return replace(log, said=exits.rank_tasks(log.said, log.lines, around), around=around)


_WATCHDOG_ENDS = "Watchdog caught collective operation timeout"
"""NCCL's watchdog aborts its process after it."""


def has_ended(snapshot: Snapshot) -> bool:
    """True if the output says that processes of the job have ended."""
    return bool(snapshot.output) and (_WATCHDOG_ENDS in snapshot.output or bool(read_output(snapshot).said.exits))


def role(raised: PrintedException) -> Role:
    """The role of a printed exception."""
    name = raised.type.rsplit(".", 1)[-1].partition("(")[0]
    if (name in _WRAPPERS and not raised_by_user(raised.frames)) or (raised.frames and _is_launcher(raised.frames[-1])):
        return "launcher"
    return role_of(f"{raised.text}{_last_error(raised)}", raised.frames)


def _last_error(raised: PrintedException) -> str:
    """Return what NCCL printed as its last error below an exception, in the form of a rank's agent; "" without one."""
    if "NCCL error" not in raised.message:
        return ""
    said = message_detail.last_error([text for _, text in raised.below])
    return f"; last error: {said[:300]}" if said else ""


def _is_launcher(frame: Frame) -> bool:
    file = frame.file.replace("\\", "/")
    return any(part in file for part in _LAUNCHERS)


def primary(raised: PrintedException) -> PrintedException:
    """Return the exception of a chain that says what was wrong.

    What the program itself raised last goes first, then what its lines called; a lost peer met while cleaning up,
    and the wrapper of a framework, only hide it.
    """
    child = child_of(raised)
    chain = (*child.before, child) if child is not None else (*raised.before, raised)
    own = [r for r in chain if role(r) == "own"]
    by_program = [r for r in own if r.frames and not is_library(r.frames[-1].file)]
    through = [r for r in own if own_frame(r.frames) is not None]
    best = next((rows[-1] for rows in (by_program, through, own) if rows), child or raised)
    rank = raised.rank if best.rank is None else best.rank
    if child is not None:  # its parent is who prints, and whose end it is
        return msgspec.structs.replace(best, rank=rank, process=child.process, who=raised.who, index=raised.index)
    return best if best.rank == rank else msgspec.structs.replace(best, rank=rank)


def outcome(
    log: Log,
    outlived: Callable[[PrintedException], bool] = lambda raised: bool(raised.handled),
    later: Callable[[Exit], bool] | None = None,
) -> Outcome:
    """Return what ended the ranks of a log, where it shows that.

    `outlived` is true for an exception after which its program or the job continued, also by times if they are known.
    `later` is true for an end after which its rank trained: it ended an earlier program, such as a step of a Slurm
    job.
    """
    later = later or _trained_after(log)
    well = completed_line(log)
    raised = [primary(r) for r in log.events.raised if not r.unheeded]
    by_role = {id(r): role(r) for r in raised}
    own = [r for r in raised if by_role[id(r)] == "own"]
    echoes = [r for r in raised if by_role[id(r)] == "peer"]
    launched = bool(log.said.exits) or any(by_role[id(r)] == "launcher" for r in raised)
    interrupted = _find_interrupts(log, raised)
    past = {id(r) for r in own if outlived(r) or (r.who in interrupted and interrupted[r.who].line < r.begin)}
    followed = past | {id(r) for r in raised if _goes_on(log, r)}
    handled = {fault_key(r) for r in own if id(r) in followed}
    followed |= {id(r) for r in raised if _printed_on(log, r)}
    ends = [r for r in raised if by_role[id(r)] in ("peer", "launcher") and not reports_child(r.text)]
    survived = _survivor_test(ends)
    spoken: dict[int | None, int] = {
        line.rank: index for index, line in enumerate(log.lines) if line.rank is not None and "Watchdog c" in line.body
    }
    late = _later_reports(log, echoes)
    past |= {
        id(r) for r in own if _was_made_good(log, r, well) or _was_killed_later(log, r) or _trained_until(log, r, late)
    }
    followed |= past
    alive = [r for r in own if id(r) not in past]
    ended = [r for r in alive if not survived(r)]
    doubtful = bool(alive) and not ended and not _exits(log, echoes, later)
    ended = alive if doubtful else ended
    standing = [r for r in ended if id(r) not in followed]
    # a watchdog thread may print after the exception that ended its rank: such exceptions yield to others
    lasting = [r for r in standing if fault_key(r) not in handled]
    standing = [r for r in lasting if spoken.get(r.rank, -1) < r.index] or lasting or standing
    standing = [r for r in standing if not (r.logged and r.rank is None)] or standing
    failed = launched or any(id(r) not in followed for r in echoes)
    if not standing and failed:
        named = any(r.rank is not None for r in raised)
        left = [r for r in ended if spoken.get(r.rank, -1) < r.index and (r.rank is not None or not named)]
        standing = _not_by_signal(log, left)
    terminal = _last_attempt(log, standing)
    mine = _one_each(terminal)
    kept = {id(r) for r in mine}
    gone_on = {id(r) for r in own if id(r) in followed and id(r) not in kept}
    unheeded = [r for r in log.events.raised if r.unheeded]
    mine = _assign_rank(log, mine, echoes)
    known = [r for r in mine if r.rank is not None]
    passed = [
        r for r in echoes if known and (outlived(r) or _goes_on(log, r) or (not log.first and _is_of_start(r, known)))
    ]
    echoes = [r for r in echoes if r not in passed]
    if log.events.processes:  # Ray shows the output of its processes in any order
        mine.sort(key=lambda r: r.rank is None)
    return Outcome(
        own=tuple(mine),
        echoes=tuple(_one_each(echoes)),
        handled=(*(r for r in own if id(r) in gone_on), *passed, *unheeded),
        exits=() if mine else _exits(log, echoes, later),
        launched=launched,
        doubtful=doubtful,
        interrupted=tuple(interrupted.values()),
    )


def completed_line(log: Log) -> int:
    """Return the line in which a run says that its training was completed, unless it failed afterwards; else 0."""
    line = completed_at((row.number, row.body) for row in log.lines)
    bad = any(e.line > line and (e.code or (e.signal and e.signal not in LAUNCHER)) for e in log.said.exits)
    return 0 if bad else line


def failed_after_completion(log: Log) -> bool:
    """True if the run says that its training was completed before any rank failed: only their end went wrong."""
    failed = (*(r.begin for r in log.outcome.own), *(e.line for e in log.outcome.exits))
    done = completed_at((row.number, row.body) for row in log.lines) if failed else 0
    return 0 < done < min(failed, default=0)


def _trained_after(log: Log) -> Callable[[Exit], bool]:
    """Return a test: long training follows an end, or the run's completion: a side step ended there, not the job."""
    done = completed_at((line.number, line.body) for line in log.lines)
    if not log.said.exits:
        return lambda _: False
    if log.first:
        return lambda end: end.line < done
    on = max((log.lines[rows[-_LONG]].number for rows in log.events.steps.values() if len(rows) >= _LONG), default=0)
    on = max(on, done)
    return lambda end: end.line < on


def trained_between(log: Log, first: PrintedException, other: PrintedException) -> bool:
    """True if any rank made progress after the first exception and before the other."""
    return any(
        (place := bisect_right(steps, first.index)) < len(steps) and steps[place] < other.index
        for steps in log.events.steps.values()
    )


def fault_key(raised: PrintedException) -> tuple[str, str, int]:
    """Return the key of a fault: ranks that raise the same type at the same line share it."""
    place = place_of(raised)
    return raised.type, place.file, place.line


def place_of(raised: PrintedException) -> CallSite:
    """Return the innermost line of the program's own code, else the innermost line; empty if unknown."""
    frame = own_frame(raised.frames) or (raised.frames[-1] if raised.frames else None)
    rank = -1 if raised.rank is None else raised.rank
    return CallSite(rank, frame.file, frame.line, frame.function) if frame else CallSite(rank, "", 0, "")


def _find_interrupts(log: Log, raised: Iterable[PrintedException]) -> dict[tuple[object, ...], PrintedException]:
    """Return process -> its interrupt by hand; what its threads raise later follows from that."""
    return {r.who: r for r in raised if r.type == "KeyboardInterrupt" and not r.thread and not _goes_on(log, r)}


def _goes_on(log: Log, raised: PrintedException) -> bool:
    """True if the process that printed the exception printed progress of training after it."""
    steps = log.events.steps.get(raised.who, ())
    return bisect_right(steps, raised.index) < len(steps)


def _is_of_start(echo: PrintedException, own: Sequence[PrintedException]) -> bool:
    """True if a rank failed to join the job, and those that failed by themselves had: it is an earlier try."""
    at = {f.function for f in echo.frames}
    return (
        echo.rank is not None
        and bool(at & _JOINS)
        and all(r.frames and not _JOINS & {f.function for f in r.frames} for r in own)
    )


def _was_made_good(log: Log, raised: PrintedException, completed: int) -> bool:
    """True if training continued after an exception, or began again, and the run says later that it completed it."""
    if raised.line >= completed:
        return False
    on = any(bisect_right(steps, raised.index) < len(steps) for steps in log.events.steps.values())
    return on or any(raised.index < begin for begin in log.first)


def _later_reports(log: Log, echoes: Iterable[PrintedException]) -> dict[int, int]:
    """Return rank -> index of the line in which it first reports that it lost another rank, or waited too long."""
    found = {r.rank: r.index for r in reversed([*echoes]) if r.rank is not None}
    for index, line in enumerate(log.lines):
        if line.rank is not None and "Watchdog c" in line.body:
            found[line.rank] = min(found.get(line.rank, index), index)
    return {rank: found[rank] for rank in sorted(found)[:_WITNESSES]}


def _trained_until(log: Log, raised: PrintedException, late: dict[int, int]) -> bool:
    """True if another rank still trained for long before it reports a lost rank: none trains without the others.

    Only its own lines count: what others print late may have been written before.
    """
    for rank, index in late.items():
        steps = log.events.steps.get(("rank", rank), ())
        if rank != raised.rank and bisect_right(steps, index) - bisect_right(steps, raised.index) >= _ON:
            return True
    return False


def _was_killed_later(log: Log, raised: PrintedException) -> bool:
    """True if training continued, and a process was killed after it: an exception ends none by a signal."""
    rows = [s for s in log.events.steps.values() if len(s) - bisect_right(s, raised.index) >= _TRAINS]
    trained = max((log.lines[steps[-1]].number for steps in rows), default=0)
    kills = (e for e in log.said.exits if e.signal in _KILLS and not log.said.was_forced(e))
    return bool(trained) and any(e.line > trained for e in kills)


def _printed_on(log: Log, raised: PrintedException) -> bool:
    """True if a Ray process that is not known as a rank printed other lines after it: it had only logged it."""
    return bool(raised.actor and raised.who[2]) and log.events.spoke.get(raised.who, -1) > raised.index


def _survivor_test(others: Iterable[PrintedException]) -> Callable[[PrintedException], bool]:
    """Return a test: a rank's main thread raised again later, for a lost peer or a signal, so it had continued."""
    last: dict[int, int] = {}
    for r in others:
        if r.rank is not None and not r.before and not r.thread:
            last[r.rank] = max(last.get(r.rank, 0), r.begin)
    return lambda raised: raised.rank is not None and last.get(raised.rank, 0) > raised.line


def _not_by_signal(log: Log, own: Iterable[PrintedException]) -> list[PrintedException]:
    """Drop exceptions of ranks that a signal ended: an exception does not end a process by a signal."""
    signals = {e.rank for e in log.said.exits if e.signal and e.signal not in LAUNCHER and e.rank is not None}
    return [r for r in own if r.rank not in signals]


def _last_attempt(log: Log, raised: Sequence[PrintedException]) -> list[PrintedException]:
    """Return the exceptions of the last attempt that has any."""
    for begin in reversed((0, *log.first)):
        later = [r for r in raised if r.index >= begin]
        if later:
            return later
    return []


def _one_each(raised: Iterable[PrintedException]) -> list[PrintedException]:
    """Return the last exception of each rank, and the first of each process without a rank."""
    found: dict[object, PrintedException] = {}
    for r in raised:
        key: object = r.rank if r.rank is not None else r.who
        if r.rank is None and key in found:
            continue
        found.pop(key, None)
        found[key] = r
    return sorted(found.values(), key=lambda r: r.index)


def _assign_rank(log: Log, own: list[PrintedException], echoes: Sequence[PrintedException]) -> list[PrintedException]:
    """Give the only exception without a rank the one rank whose exit status it explains."""
    nameless = [r for r in own if r.rank is None]
    if len(nameless) != 1 or len(own) != 1:
        return own
    spoken = {r.rank for r in echoes}
    failed = {e.rank for e in log.said.exits if e.rank is not None and e.code and e.rank not in spoken}
    if len(failed) != 1 or len([r for r in echoes if r.rank is None]) > 0:
        return own
    return [msgspec.structs.replace(own[0], rank=min(failed))]


def _exits(log: Log, echoes: Sequence[PrintedException], later: Callable[[Exit], bool]) -> tuple[Exit, ...]:
    """Return ends without an exception: by the program (`os._exit`, `sys.exit`) or a signal not from the launcher."""
    spoken = {r.rank for r in echoes}
    last = {e.rank: e for e in log.said.exits if e.rank is not None and e.rank not in spoken and not later(e)}
    aborted: set[int | None] = {*log.said.enforced} or ({*last} if log.said.enforce else set())
    # A watchdog aborts its own process, which waited too long; one without a known rank may be any process's.
    timed_out = {line.rank for line in log.lines if "Watchdog c" in line.body}
    timed_out |= {other for rank in timed_out if rank is not None for other in log.around.alike.get(rank, ())}
    aborted |= {*last} if None in timed_out else timed_out
    signalled = [e for e in last.values() if e.signal and e.signal not in LAUNCHER and not log.said.was_forced(e)]
    taken_down: set[int | None] = {r for r, words in log.said.watchdogs.items() if not words.startswith("CUDA error")}
    taken_down |= {other for rank in taken_down if rank is not None for other in log.around.alike.get(rank, ())}
    explained = {"SIGABRT": aborted | taken_down, "SIGSEGV": taken_down}
    violent = [e for e in signalled if e.rank not in explained.get(e.signal, ())]
    if timed_out:  # of a killed rank and those that abort, the watchdogs waited for the killed one
        violent = [e for e in violent if e.signal != "SIGABRT"] or violent
    coded = [e for e in last.values() if e.code]
    outside = [e for e in last.values() if e.rank in log.said.signalled_from_outside]
    return tuple(sorted(violent or coded or outside, key=lambda e: e.rank or 0))
