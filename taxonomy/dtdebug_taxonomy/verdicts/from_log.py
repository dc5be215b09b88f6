"""Finds the rank that failed first in a printed log, and the failures that follow from it.

A rank that raised on its own comes before all that lost
a peer or were ended by the launcher, whatever was printed first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from dtdebug_taxonomy.logs.child_processes import in_process
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.exits import LAUNCHER, UNOPENED, Exit
from dtdebug_taxonomy.logs.lines import Line, is_launched_by_tasks
from dtdebug_taxonomy.logs.log import (
    Log,
    Outcome,
    completed_line,
    failed_after_completion,
    fault_key,
    outcome,
    place_of,
    read_output,
    surrounded,
    trained_between,
)
from dtdebug_taxonomy.logs.tasks import NO_SURROUNDINGS, Surroundings
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import Alternative, CallSite, Verdict, ranges, spell
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.verdicts import collective_mismatch, nccl_watchdog
from dtdebug_taxonomy.verdicts.absent_ranks import line_claim
from dtdebug_taxonomy.verdicts.horovod_stalls import stall_verdict
from dtdebug_taxonomy.verdicts.lost_peer import called_at, only_lost

_BARRIER = re.compile(r"Barrier timed out\. (?:Barrier_id|Id): (?P<id>[^\s]{1,200}?)\.(?: |$)")
_COUNT = re.compile(r"# of tasks that reached the barrier: (?P<came>\d{1,7})/(?P<all>\d{1,7})")
_NAMES = "imed out task names:"
_TASK = re.compile(r"/job:(?P<job>\w{1,60})/replica:\d{1,6}/task:(?P<task>\d{1,7})$")
_WITHIN = 4
"""Maximum number of lines from the barrier's to the one above the names."""


def coordination_verdict(log: Log) -> Verdict | None:
    """Return the verdict on the first barrier that timed out for missing processes; None without one or its names."""
    for index, line in enumerate(log.lines):
        found = _BARRIER.search(line.body) if "Barrier timed out" in line.body else None
        if found and (verdict := _verdict(log.lines, index, found["id"])):
            return verdict
    return None


def _verdict(rows: Sequence[Line], at: int, barrier: str) -> Verdict | None:
    head = rows[at : at + _WITHIN + 1]
    named = next((i for i, line in enumerate(head) if line.body.rstrip().endswith(_NAMES)), None)
    if named is None:
        return None
    tasks = [*_tasks(rows[i] for i in range(at + named + 1, len(rows)))]
    if not tasks or len({job for job, _, _ in tasks}) != 1:
        return None
    absent = tuple(sorted({rank for _, rank, _ in tasks}))
    count = next((m for line in head if (m := _COUNT.search(line.body))), None)
    missing = int(count["all"]) - int(count["came"]) if count else len(absent)
    others = f" and {missing - len(absent)} more" if missing > len(absent) else ""
    came = f"; {count['came']} of {count['all']} processes came" if count else ""
    claims = (
        line_claim(head[0], f"Barrier timed out: {barrier}"),
        *(line_claim(line, line.body.strip(), (rank,)) for _, rank, line in tasks[:6]),
    )
    return Verdict(
        kind="not_arrived",
        culprits=absent,
        confidence=0.8,
        summary=f"{spell(absent, 8).capitalize()}{others} did not come to the barrier {barrier} "
        f"before its time was up{came}.",
        claims=claims,
        evidence=texts(claims),
    )


def _tasks(rows: Iterable[Line]) -> Iterator[tuple[str, int, Line]]:
    """Yield (job, task, line) of the names, which are printed on consecutive lines."""
    for line in rows:
        found = _TASK.match(line.body.strip())
        if found is None:
            return
        yield found["job"], int(found["task"]), line


_CERTAIN, _LIKELY, _NAMELESS = 0.95, 0.8, 0.6
_WORDS = 300
_SHOWN, _HOSTS = 16, 3


def verdict_of_log(
    snapshot: Snapshot,
    exclusive: Callable[[str, int, int], bool | None] = lambda file, one, other: None,
    outlived: Callable[[PrintedException], bool] = lambda raised: bool(raised.handled),
    later: Callable[[Exit], bool] | None = None,
    around: Surroundings = NO_SURROUNDINGS,
) -> Verdict | None:
    """Return the verdict that a printed log allows, or None.

    What ranks print comes before how they ended: their own exceptions, then what the others' watchdogs print about the
    rank that they wait for, then a signal that no one sent, and last an exit code.

    `exclusive(file, one, other)` is true if no rank reaches both lines of a file: this needs the source, which is not
    read here. `outlived` and `later` are as in `outcome`. `around` is what else is known of the job.
    """
    if not snapshot.output:
        return None
    log = surrounded(read_output(snapshot), around) if around is not NO_SURROUNDINGS else read_output(snapshot)
    found = outcome(log, outlived, later)
    compared = collective_mismatch.mismatch_verdict(log, found.own, exclusive)
    if compared is not None:
        return compared
    own = found.own
    waited = nccl_watchdog.watchdog_verdict(log) or coordination_verdict(log)
    if found.exits and (ended := _ended_first(found, waited)):
        return _verdict_on_exits(msgspec.structs.replace(found, exits=ended), log.said.unopened)
    if own and (found.launched or any(r.rank is not None for r in own) or found.echoes or waited):
        return _verdict_on_errors(log, found, () if waited is None else waited.claims)
    if waited is not None or own:
        return waited
    if (behind := stall_verdict(log)) is not None:
        return behind
    if not (own or found.exits) and completed_line(log):
        return None  # a scheduler or launcher that ends what is left
    echoes = found.echoes
    lost = only_lost(log, echoes, [_claim(r) for r in echoes[:_SHOWN]], [*_sites(echoes)])
    return lost or _ended_tasks(log)


def _ended_first(found: Outcome, waited: Verdict | None) -> tuple[Exit, ...]:
    """Return the ends that explain the failure: what watchdogs say of the rank that they wait for comes before them."""
    if waited is None:
        return found.exits
    if waited.culprits:
        return tuple(e for e in found.exits if e.rank in waited.culprits)
    return tuple(e for e in found.exits if e.rank not in waited.waiting or e.signal)


def _verdict_on_errors(log: Log, found: Outcome, waited: tuple[Claim, ...]) -> Verdict:
    """Return the verdict on ranks that raised on their own; `waited` are claims of watchdogs about others."""
    first = found.own[0]
    alike = [r for r in found.own if fault_key(r) == fault_key(first)]
    others = [r for r in found.own if fault_key(r) != fault_key(first)]
    apart = [r for r in others if trained_between(log, first, r)]
    """Training continued before they failed: a failure of their own, or of another run."""
    culprits = tuple(sorted({r.rank for r in alike if r.rank is not None}))
    failed = (*found.echoes, *(r for r in others if r not in apart))
    victims = tuple(sorted({r.rank for r in failed if r.rank is not None} - set(culprits)))
    place = place_of(first)
    where = called_at(place)
    who = spell(culprits, 8) if culprits else _process(log, first) or "a rank"
    later = f"; {spell(victims)} failed because of it" if victims else ""
    if victims and not culprits:  # one of them may be the first
        unsaid = "" if who != "a rank" else "which one is not printed, and "
        later = f"; {unsaid}{spell(victims)} lost the connection after it"
        victims = ()
    if not culprits and log.said.named is not None:
        later += f"; torchrun saw rank {log.said.named} end first"
    if apart:
        name = "a rank" if apart[0].rank is None else f"rank {apart[0].rank}"
        later += f"; later, after more training, {name} raised {apart[0].text[:160]} (line {apart[0].line})"
    text = in_process(first)
    when = "After the training was completed, " if failed_after_completion(log) else ""
    summary = f"{when or who[:1].upper()}{who if when else who[1:]} raised {text}{where}{later}."
    claims = (
        *(_claim(r, _process(log, r)) for r in (*alike[:_SHOWN], *others[:_SHOWN], *found.echoes[:_SHOWN])),
        *waited[:_SHOWN],
    )
    single = not others and not found.doubtful
    return Verdict(
        kind="dead",
        culprits=culprits,
        waiting=victims,
        sites=tuple(_sites((*alike, *others, *found.echoes))),
        confidence=(_CERTAIN if single else _LIKELY) if culprits else _NAMELESS,
        summary=summary,
        claims=claims,
        evidence=texts(claims),
        alternatives=tuple(
            Alternative(
                kind="dead",
                culprits=(r.rank,),
                because=f"rank {r.rank} raised {r.text[:120]}, which was printed later",
                refute="times of both errors by one clock",
            )
            for r in others[:3]
            if r.rank is not None
        ),
    )


def _process(log: Log, raised: PrintedException) -> str:
    """Return the process that raised it, if it is known without a rank, else "".

    If the processes of ranks are listed, a process without a rank is the driver.
    """
    if raised.rank is not None:
        return ""
    return raised.actor or ("the driver" if log.events.processes and not raised.who[2] else "")


def _verdict_on_exits(found: Outcome, unopened: str) -> Verdict:
    """Return the verdict on ranks that ended without an exception; `unopened` as in `Exits`."""
    culprits = tuple(sorted({e.rank for e in found.exits if e.rank is not None}))
    victims = tuple(sorted({r.rank for r in found.echoes if r.rank is not None} - set(culprits)))
    how = list(dict.fromkeys(_how(e) for e in found.exits))
    later = f"; {spell(victims)} failed because of it" if victims else ""
    who = spell(culprits, 8)
    # an exception, too, ends a program with a code, and is then printed elsewhere
    signalled = all(e.signal for e in found.exits)
    unsaid = " without an exception" if signalled else "; no exception is printed"
    if unopened and all(e.code == UNOPENED for e in found.exits):
        unsaid = f": {unopened}"
    ends = tuple(
        Claim(
            what="ended",
            ranks=(e.rank,),
            words=f"was ended by {e.signal}" if e.signal else f"ended with {_how(e)}",
            record=Record(source="output", line=e.line, rank=e.rank, words=_how(e)),
        )
        for e in found.exits[:_SHOWN]
        if e.rank is not None
    )
    claims = (*ends, *(_claim(r) for r in found.echoes[:_SHOWN]))
    return Verdict(
        kind="dead",
        culprits=culprits,
        waiting=victims,
        sites=tuple(_sites(found.echoes)),
        confidence=_CERTAIN if len(culprits) == 1 else _LIKELY,
        summary=f"{who[:1].upper()}{who[1:]} ended with {' or '.join(how[:3])}{unsaid}{later}.",
        claims=claims,
        evidence=texts(claims),
    )


def _ended_tasks(log: Log) -> Verdict | None:
    """Give the verdict on tasks of Slurm that ended, if the output does not show which ranks they are."""
    last = {e.task: e for e in log.said.exits if e.task is not None and e.rank is None}
    ends = [e for e in last.values() if e.signal and e.signal not in LAUNCHER] or [e for e in last.values() if e.code]
    if not ends or any(is_launched_by_tasks(line.body) for line in log.lines):
        return None
    tasks = tuple(sorted(e.task for e in ends if e.task is not None))
    hosts = tuple(dict.fromkeys(e.host for e in ends if e.host))
    where = f" on {', '.join(hosts[:_HOSTS])}{' and others' if len(hosts) > _HOSTS else ''}" if hosts else ""
    how = " or ".join(list(dict.fromkeys(_how(e) for e in ends))[:3])
    claims = tuple(
        Claim(
            what="ended",
            ranks=(),
            hosts=(e.host,) if e.host else (),
            process=f"task {e.task}",
            words=f"was ended by {e.signal}" if e.signal else f"ended with {_how(e)}",
            record=Record(source="output", line=e.line, words=_how(e)),
        )
        for e in ends[:_SHOWN]
    )
    several = len(tasks) > 1
    name = f"Slurm tasks {ranges(tasks)}" if several else f"Slurm task {tasks[0]}"
    return Verdict(
        kind="dead",
        confidence=_NAMELESS,
        summary=f"{name}{where} ended with {how}. The log does not show which ranks {'they' if several else 'it'} ran.",
        claims=claims,
        evidence=texts(claims),
    )


def _how(end: Exit) -> str:
    return "SIGKILL, killed for memory" if end.memory else end.signal or f"exit code {end.code}"


def _sites(raised: Iterable[PrintedException]) -> Iterable[CallSite]:
    seen: set[int] = set()
    for r in raised:
        place = place_of(r)
        if place.file and place.rank >= 0 and place.rank not in seen:
            seen.add(place.rank)
            yield place


def _claim(raised: PrintedException, process: str = "") -> Claim:
    place = place_of(raised)
    return Claim(
        what="raised",
        ranks=() if raised.rank is None else (raised.rank,),
        process=process,
        file=place.file,
        line=place.line,
        function=place.function,
        words=in_process(raised),
        record=Record(source="output", line=raised.line, rank=raised.rank, words=raised.text[:_WORDS]),
    )
