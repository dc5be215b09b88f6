"""Finds where another run begins in one output: launches appended to one file, a job that was queued again.

A launch shows by its own command line, or by the lines that a run begins with, which come again once the job before has
ended. A restart by an elastic launcher is an attempt of the same run. Logs of several ranks or nodes one after another
look alike: their clocks overlap, or they name other ranks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from dtdebug_taxonomy.logs.completion import is_completion
from dtdebug_taxonomy.logs.log import Log, read_output, role
from dtdebug_taxonomy.logs.progress import STEP
from dtdebug_taxonomy.logs.split_failures import part_of
from dtdebug_taxonomy.logs.split_post import split_prose
from dtdebug_taxonomy.model.snapshot import Snapshot

_HEAD, _ORDERED = 60, 5
"""Lines that a run begins with, and the first of them, which are compared in their order."""
_UNLIKE = 3
"""Minimum number of shapes among the ordered ones that show a new run though nothing says that the last one ended."""
_MOST = 64
_DIGITS = str.maketrans("", "", "0123456789")
_WORDED = re.compile(r"[A-Za-z]{3}")
_COMMAND = re.compile(
    r"(?:\(\S{1,40}\) )?(?:\+|\S{0,80}[$%#]|>) (?:[A-Z_0-9]{1,40}=\S{0,200} |nohup |exec |time ){0,8}"
    r"(?:\S{0,200}/)?(?:torchrun|accelerate|deepspeed|srun|mpirun|mpiexec|horovodrun|ray|python[\d.]{0,5})\s"
)
"""A launch that a shell shows: `$ torchrun ...`, `+ srun ...`."""
_PROMPT = re.compile(r"(?:\(\S{1,40}\) )?\S{0,80}[$%#] ")
"""Prompt of a shell, which comes when the command before has ended."""
_JOB_ENDS = re.compile(
    r"\bCANCELLED AT\b|Job step aborted|Terminating (?:StepId|Job)|exits with return code ="
    r"|(?:mpirun|prterun|mpiexec) (?:has )?(?:detected|noticed)"
)
"""Reports that all processes of a job are ended. Sources: Slurm (srun), Open MPI, deepspeed/launcher/launch.py."""
_JOB = re.compile(r"slurmstepd: error: \*\*\* JOB (\d{1,18}) ON ")
"""Report of Slurm that names the job that ended."""
_TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T_]|[IWEF](\d{4}) )?(\d\d:\d\d:\d\d)")
_TIMED = 160
_Span = tuple[str, str]


def runs_of(snapshot: Snapshot) -> tuple[Snapshot, ...]:
    """Return the runs that an output shows, each with its lines; the snapshot alone if it shows one, or is a post."""
    log = read_output(snapshot)
    found = {**dict(islice(_begins(log), _MOST)), **dict.fromkeys(_other_jobs(log), True)}
    if not found or split_prose(snapshot.output)[0].strip():
        return (snapshot,)
    cuts = sorted(found)
    ends = (0, *cuts, len(log.lines))
    rows = snapshot.output.split("\n")
    times = [_times(rows, snapshot, log, *span) for span in pairwise(ends)]
    ranks = [{line.rank for line in log.lines[a:b] if line.rank is not None} for a, b in pairwise(ends)]
    kept = [
        cut
        for place, cut in enumerate(cuts, 1)
        if _follows(times[place - 1], times[place], reported=found[cut])
        and not _are_others(ranks[place - 1], ranks[place])
    ]
    return tuple(part_of(snapshot, log, *span) for span in pairwise((0, *kept, len(log.lines))))


def may_hold_runs(bodies: Sequence[str]) -> bool:
    """True if an output may show several runs, by the first of its lines and the unusual ones: a cheap test.

    `bodies` holds the first lines of each shape at least, in their order.
    """
    head = dict.fromkeys(shape for body in bodies[: 2 * _ORDERED] if (shape := _shape(body)) and not STEP.search(body))
    first = [*islice(head, _ORDERED)]
    jobs, launches, last = set[str](), 0, (-_HEAD, "")
    for at, body in enumerate(bodies):
        if "*** JOB " in body and (job := _JOB.search(body)) is not None:
            jobs.add(job[1])
        launches += _COMMAND.match(body[:600]) is not None
        if at >= 2 * _ORDERED and (shape := _shape(body)) in first:
            if len(first) == 1 or (at - last[0] <= _ORDERED and shape != last[1]):
                return True
            last = at, shape
    return len(jobs) > 1 or launches > 1


def _other_jobs(log: Log) -> Iterator[int]:
    """Yield the places below the end of a job of Slurm, where another one ends later."""
    ends = [(at, job[1]) for at, line in enumerate(log.lines) if (job := _JOB.search(line.body[:400])) is not None]
    yield from (at + 1 for (at, job), (_, other) in pairwise(ends) if job != other)


def _begins(log: Log) -> Iterator[tuple[int, bool]]:
    """Yield where another run begins, and whether a launch or the end of the job before it is reported."""
    shapes = [_shape(line.body) for line in log.lines]
    busy, failures, over = _busy(log), _ends(log), _job_ends(log)
    tops = sorted({*(first for first, _ in busy), *failures, *over})  # a run's first lines are above these
    begin, (head, below) = 0, _head(shapes, tops, 0)
    top = 0  # the highest step of the run
    for at, line in enumerate(log.lines):
        if at >= below and shapes[at] and not _inside(busy, at):
            ended = _within(over, begin, at)
            failed = ended or (_within(failures, begin, at) and not _within(log.first, begin, at))
            again = failed and top and line.rank is not None and line.body == log.lines[begin].body
            launch = _COMMAND.match(line.body[:600]) is not None
            asked = launch and all(map(_PROMPT.match, (line.body[:200], log.lines[begin].body[:200])))
            told = ended or bool(again) or (launch and failed) or asked
            if asked or (told and not ended) or _is_begin(shapes, at, head, ended=ended, failed=failed):
                yield at, told
                begin, (head, below), top = at, _head(shapes, tops, at), 0
        if (step := STEP.search(line.body[:400])) is None:
            continue
        number = int(step[1])
        if number <= top and (end := _last(over, begin, at)) and not _within(log.first, end, at):
            begin = _below(log, shapes, end)
            yield begin, True
            (head, below), top = _head(shapes, tops, begin), 0
        top = max(top, number)


def _is_begin(shapes: Sequence[str], at: int, head: Sequence[str], *, ended: bool, failed: bool) -> bool:
    """True if the lines from a place on are those that the run began with."""
    if ended:
        return shapes[at] in head
    if not head or shapes[at] != head[0]:
        return False
    first = head[:_ORDERED]
    here = [*islice((s for s in shapes[at : at + 4 * _ORDERED] if s), len(first))]
    if here != first:
        return False
    return (len(first) == _ORDERED and len({*first}) >= _UNLIKE) or (failed and len({*first}) > 1)


def _shape(body: str) -> str:
    return " ".join(body[:200].translate(_DIGITS).split()) if _WORDED.search(body[:200]) else ""


def _head(shapes: Sequence[str], tops: Sequence[int], begin: int) -> tuple[list[str], int]:
    """Return the shapes of the lines that a run begins with, and the first place below them."""
    place = bisect_left(tops, begin)
    until = min(tops[place] if place < len(tops) else len(shapes), begin + 2 * _HEAD)
    return [*islice((shape for shape in shapes[begin:until] if shape), _HEAD)], max(until, begin + 1)


def _busy(log: Log) -> list[tuple[int, int]]:
    """Return first and last position of tracebacks and of lines of progress, in their order."""
    numbers = [line.number for line in log.lines]
    spans = [(bisect_left(numbers, r.begin), r.index) for r in log.events.raised]
    spans += [(place, place) for steps in log.events.steps.values() for place in steps]
    spans += [(place, place) for place in (bisect_left(numbers, e.line) for e in log.said.exits)]
    return sorted(spans)


def _inside(busy: Sequence[tuple[int, int]], at: int) -> bool:
    place = bisect_right(busy, (at, len(busy) + at))
    return any(first <= at <= last for first, last in busy[max(place - 4, 0) : place])


def _ends(log: Log) -> list[int]:
    """Return the positions at which a process ends, or the run says that it is completed."""
    numbers = [line.number for line in log.lines]
    ends = {r.index for r in log.events.raised if not r.handled and not r.unheeded}
    ends |= {bisect_left(numbers, e.line) for e in log.said.exits}
    return sorted(ends | {at for at, line in enumerate(log.lines) if is_completion(line.body)})


def _job_ends(log: Log) -> list[int]:
    """Return the positions at which a launcher or scheduler reports that the whole job has ended."""
    ends = {r.index for r in log.events.raised if role(r) == "launcher" and r.type != "KeyboardInterrupt"}
    return sorted(ends | {at for at, line in enumerate(log.lines) if _JOB_ENDS.search(line.body[:2000])})


def _within(places: Sequence[int], begin: int, end: int) -> bool:
    return bisect_left(places, end) > bisect_left(places, begin)


def _last(places: Sequence[int], begin: int, end: int) -> int:
    """Return the last of the places between two; 0 without one."""
    at = bisect_left(places, end)
    return places[at - 1] if at and places[at - 1] >= begin else 0


def _below(log: Log, shapes: Sequence[str], end: int) -> int:
    """Return the first line below an end that is not of its report: not indented, no rule, no line of a launcher."""
    numbers = [line.number for line in log.lines]
    end = max([end, *(at for e in log.said.exits if end < (at := bisect_left(numbers, e.line)) < end + _HEAD)])
    own = (at for at in range(end + 1, len(shapes)) if shapes[at] and not log.lines[at].body[:1].isspace())
    return next(own, end + 1)


def _times(rows: Sequence[str], snapshot: Snapshot, log: Log, begin: int, end: int) -> dict[int, _Span]:
    """Return the first and the latest time of some lines in each form of date that they print."""
    first = bisect_left(range(1, len(rows) + 1), log.lines[begin].number, key=snapshot.true_line)
    last = bisect_right(range(1, len(rows) + 1), log.lines[end - 1].number, key=snapshot.true_line)
    spans = dict[int, _Span]()
    for row in rows[first:last]:
        if (found := _TIME.search(row[:_TIMED])) is not None:
            time = f"{found[1] or found[2] or ''} {found[3]}"
            began, latest = spans.get(len(time), (time, time))
            spans[len(time)] = began, max(latest, time)
    return spans


def _follows(before: dict[int, _Span], later: dict[int, _Span], *, reported: bool) -> bool:
    """True if the part above ended before this one began; without times, only what is reported shows it.

    Ranks of one job print alike, and a buffered output comes as a whole when its rank ends.
    """
    both = [(before[form][1], later[form][0]) for form in before.keys() & later.keys()]
    return all(end <= begin if reported else end < begin for end, begin in both) and (reported or bool(both))


def _are_others(before: set[int], later: set[int]) -> bool:
    """True if two parts are of other ranks of one job, such as those of another node."""
    return before.isdisjoint(later) and bool(before and later) and len(before | later) > 2 and min(later) > max(before)


def lines_of(run: Snapshot) -> tuple[int, int]:
    """Return the first and the last line of a run in the whole output."""
    rows = run.output.rstrip("\n").count("\n") + 1
    return run.true_line(1), run.true_line(rows)
