"""Chooses the next step: fix, measure or ask, whichever is expected to cost the fewest minutes.

Observations and repairs compete in one decision, each with its cost, as in Heckerman, Breese and Rommelse,
"Decision-theoretic troubleshooting", CACM 38(3), 1995.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from dtdebug_taxonomy.inference.conditions import contradiction, holds
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import STRENGTHS, Measure
from dtdebug_taxonomy.logs.log import has_ended
from dtdebug_taxonomy.logs.log_end import is_stop
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.stacks.frames import is_library
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.shown_code import commands

_SEARCH = 120.0
"""Minutes of searching if neither a repair nor a measurement has found the cause."""
_WORTH = 0.02
"""Probability of naming the cause below which a measurement is not a next step, even if nothing else is known."""
_LIKELY = 0.5
"""Probability of a cause from which the line of an exception is inspected before any question."""
_MENDING = 15.0
"""Minutes to fix what a measurement has named."""


_PROGRAM, _WRITTEN = "train.py", 200
"""Name of the user's program in measures; maximum characters of a job's command that are written out."""

_POST = 20_000
"""Maximum characters of an output in which the command of the job is looked for."""
_OUTERMOST = lazy_re(r'File "([^"\n]{1,300}\.py)", line \d{1,7}, in <module>')


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """The one thing to do next."""

    kind: Literal["measure", "ask", "fix"]
    text: str
    command: str = ""
    minutes: float
    """Cost, including the time until its result is known."""
    why: str = ""
    """For a measurement the interpretation of its output; else why this comes first."""


BISECT = Next(
    kind="measure",
    text="Rerun it with one thing changed at a time between the two, and see which change decides.",
    command="dtdebug bisect -- torchrun ... train.py",
    minutes=13,
    why="It names the component that decides. Say what you know already with --answer, and it does not run that.",
)
_LOOK = Next(
    kind="measure",
    text="If the job still runs, look at where each rank is.",
    command="dtdebug attach",
    minutes=2,
    why="Ranks that make progress: the job runs. One rank outside the call in which the others wait: its line is the "
    "cause. No job found: it is gone, or on another host; see its scheduler.",
)
"""Step after a log that stops."""


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """The leading cause, reduced to what choosing the next step needs."""

    title: str
    fix: str
    probability: float
    minutes: float
    named: bool = False
    """True if the output names it: another run would add nothing."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """The best question, reduced to what choosing the next step needs."""

    ask: str
    why: str
    command: str
    minutes: float
    saves: float
    """Expected minutes that the answer saves."""


def next_step(
    knowledge: Knowledge,
    snapshot: Snapshot,
    known: tuple[Mapping[str, float], Sequence[Finding]],
    repair: Repair | None,
    ask: Ask | None,
) -> Next | None:
    """Return the cheapest of the repair, the measurements and the question; None if there is none.

    If the output names the cause, only an examination of a job that is still alive precedes its repair; if nothing
    points at one, a measurement precedes a question.
    `known`: probabilities of the symptoms, and the findings.
    """
    if is_stop(snapshot.verdict):
        return _LOOK
    symptoms, findings = known
    started = job_of(snapshot)
    native = is_native(started)
    otherwise = _SEARCH
    rows: list[tuple[float, Next]] = []
    if repair is not None:
        otherwise = repair.minutes + (1 - repair.probability) * _SEARCH
        rows.append((otherwise, Next(kind="fix", text=repair.fix, minutes=repair.minutes, why=repair.title)))
    named = repair is not None and repair.named
    for m in knowledge.measures:
        if native and m.command.startswith("dtdebug ") and "doctor" not in m.command:
            continue
        if (m.alive or not named) and (told := _tells(m, snapshot, symptoms, findings)) >= _WORTH:
            expected = m.minutes + told * _MENDING + (1 - told) * otherwise
            command = _with_answers(m, findings, started)
            rows.append((expected, Next(kind="measure", text=m.text, command=command, minutes=m.minutes, why=m.means)))
    placed = repair is not None and repair.probability >= _LIKELY and any(f.terminal for f in findings)
    if ask is not None and not named and not placed and (repair is not None or not rows):
        expected = otherwise - min(ask.saves, otherwise / 2)
        rows.append((expected, Next(kind="ask", text=ask.ask, command=ask.command, minutes=ask.minutes, why=ask.why)))
    return min(rows, key=lambda row: row[0])[1] if rows else None


def _told(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the one command with which the user says that the job is started; empty if none or several are told."""
    found = {command for _, command in commands(snapshot.situation) if "\n" not in command}
    if not found and len(snapshot.output) <= _POST:  # a post: its command may stand among what was printed
        found = {command for _, command in commands(snapshot.output) if "\n" not in command}
    with suppress(ValueError):  # a quotation mark that is not closed
        return tuple(shlex.split(found.pop())) if len(found) == 1 else ()
    return ()


def _printed_program(output: str) -> tuple[str, ...]:
    """Return the program whose outermost frame the tracebacks of the output show, without its directories."""
    found = {path for path in _OUTERMOST.findall(output) if not is_library(path)}
    return (found.pop().rpartition("/")[2],) if len(found) == 1 else ()


def _with_answers(m: Measure, findings: Sequence[Finding], started: Sequence[str]) -> str:
    """Return its command for the job that was `started`, with those of its answers that are known."""
    known = {f.evidence: f.values[0] for f in findings if f.evidence in m.takes and len(f.values) == 1}
    words = [f"--answer {key}={known[key]}" for key in m.takes if key in known]
    head, dashes, job = m.command.partition(" -- ")
    return fit_to_job(f"{' '.join((head, *words))}{dashes}{job}", findings, started)


def fit_to_job(command: str, findings: Sequence[Finding], started: Sequence[str]) -> str:
    """Return a command of ours with the launcher and the program of the user's job, as far as they are known."""
    program = next((word for word in started if word.endswith(".py") and not word.startswith("-")), "")
    whole = shlex.join(started)
    job = _JOB
    if len(started) > 1 and len(whole) <= _WRITTEN and (program or is_native(started)):
        job = whole
    elif is_native(started):
        job = f"{started[0]} ... {next((word for word in started[1:] if word.startswith(('/', './'))), '...')}"
    elif not (started and started[0] in _OWN):
        values = next((f.values for f in findings if f.evidence == "launcher" and len(f.values) == 1), ("",))
        job = _JOBS.get(values[0], _JOB)
    if program and job is not whole:
        job = job.replace(_PROGRAM, shlex.quote(program))
    if program and _JOB not in command:
        return command.replace(_PROGRAM, shlex.quote(program))
    exported = _EXPORTED.match(command)
    if exported is not None and (mpi := _MPI.match(job)) is not None:  # the variables have to reach other hosts
        options = " ".join(f"-x {each}" for each in exported["variables"].split())
        rest = command[exported.end() :].replace(_JOB, job[mpi.end() :], 1)
        return f"{mpi['name']} {options}{rest}"
    return command.replace(_JOB, job)


def is_native(started: Sequence[str]) -> bool:
    """True for a command that starts a program which is not Python: nothing of ours can be in its processes."""
    names = [word.rpartition("/")[2] for word in started]
    scripts = any(name.endswith((".py", ".sh")) or name in {"bash", "sh", "-m"} for name in names)
    python = any(name.startswith("python") for name in names)
    return bool(names) and names[0] in {"mpirun", "mpiexec", "srun"} and not (scripts or python)


def job_of(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the command that started the job, or the name of its program alone; empty if neither is known."""
    return snapshot.command or _told(snapshot) or _printed_program(snapshot.output)


_JOB = f"torchrun ... {_PROGRAM}"
_JOBS = {
    "mpirun": f"mpirun ... python {_PROGRAM}",
    "horovodrun": f"horovodrun ... python {_PROGRAM}",
    "deepspeed": f"deepspeed ... {_PROGRAM}",
    "slurm": f"srun ... python {_PROGRAM}",
    "spawn": f"python {_PROGRAM}",
    "ray": f"python {_PROGRAM}",
    "plain_python": f"python {_PROGRAM}",
}
"""Launcher, as an observation has it -> how such a job is written."""
_OWN = frozenset({"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "srun"})
_EXPORTED = lazy_re(rf"(?P<variables>(?:[A-Z_]{{3,40}}=\S{{1,40}} )+)(?={_JOB})")
_MPI = lazy_re(r"(?P<name>mpirun|mpiexec)(?= )")


def _tells(m: Measure, snapshot: Snapshot, symptoms: Mapping[str, float], findings: Sequence[Finding]) -> float:
    """Return the probability that a measurement names the cause."""
    verdict = snapshot.verdict
    placed = verdict is not None and any(site.rank in verdict.culprits for site in verdict.sites)
    placed = placed or any(f.terminal for f in findings)  # an exception with its line
    spent = {
        "": False,
        "ranks": placed or (verdict is not None and bool(snapshot.ranks)),  # the rank and its line are known
        "output": bool(snapshot.output.strip()) or snapshot.exception is not None,
        "source": snapshot.source_read or bool(snapshot.source_findings),
        "contrasts": placed or bool(snapshot.contrasts),  # a line of the rank itself is read faster than a job runs
    }[m.spent_by]
    if m.alive and has_ended(snapshot):
        return 0.0
    names = {name for f in findings for name in f.names}
    if not names.isdisjoint(m.unless) or (m.seen and names.isdisjoint(m.seen)):
        return 0.0
    if spent or contradiction(m.needs, findings) or (m.known and not holds(m.needs, findings)):
        return 0.0
    return STRENGTHS[m.tells] * math.fsum(symptoms.get(code, 0.0) for code in m.symptoms)
