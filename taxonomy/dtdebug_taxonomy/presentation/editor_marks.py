"""The last failures as editors show them: their places in the user's own files, and what they are.

Written when a run or cell fails (`failures.json` in the state directory), read by the language server. Data and pure
functions: reading and writing is up to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from dtdebug_taxonomy.logs.log import read_output
from dtdebug_taxonomy.model.ranks import Frame, Verdict, say
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.stacks.frames import is_library, own_frames

if TYPE_CHECKING:  # readers of failures need no inference
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis

VERSION = 1
FILE = "failures.json"
"""Name of its file in the state directory."""
DISMISSED = "dismissed.json"
"""Ids that the user has dismissed, written by the editor's side: each file has one writer."""
MOST = 20
"""Maximum number of failures to keep."""
_PLACES = 12
_LONGEST = 400


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Line that a failure points at."""

    file: str
    """Absolute path; of a notebook's cell, its name in the traceback."""
    line: int
    """From 1."""
    says: str
    """Statement about that line: `rank 3 stopped here`."""
    words: str = ""
    """Text of the line when it failed, stripped; empty if unknown."""
    cell: str = ""
    """Source of the notebook's cell that the line is in."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failed run or cell."""

    id: str
    job: str
    """Name of what was run: a later success of the same removes this."""
    time: float
    """Seconds since the epoch."""
    code: str
    """Symptom code."""
    title: str
    message: str
    """Description of what happened, in one or two sentences."""
    marks: tuple[Mark, ...]
    """The place to inspect first, then the others."""


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """`failures.json`, newest first."""

    v: int = VERSION
    failures: tuple[Failure, ...] = ()

    def with_(self, failure: Failure) -> Failures:
        """Return a copy with one more, which replaces an earlier one of the same job."""
        return msgspec.structs.replace(self, failures=(failure, *self.without(failure.job).failures)[:MOST])

    def without(self, job: str) -> Failures:
        """Return a copy without the failures of a job."""
        return msgspec.structs.replace(self, failures=tuple(f for f in self.failures if f.job != job))


def failure_of(snapshot: Snapshot, diagnosis: Diagnosis, *, job: str, time: float) -> Failure | None:
    """Return the failure as an editor shows it; None if it is not recognised or points at no line of the user's."""
    if not diagnosis.recognised or diagnosis.verdict == "unknown":
        return None
    marks = tuple(_distinct([*_verdict(snapshot.verdict), *_exception_marks(snapshot), *_output_marks(snapshot)]))
    if not marks:
        return None
    first = diagnosis.symptoms[0]
    return Failure(
        id=f"{time:.3f}",
        job=job,
        time=time,
        code=first.code,
        title=first.title,
        message=_message(diagnosis)[:_LONGEST],
        marks=marks,
    )


def _message(diagnosis: Diagnosis) -> str:
    said = diagnosis.happened
    causes = [f"Cause, {a.band}: {a.title}." for a in diagnosis.advice[:1] if a.band != "unlikely"]
    return " ".join(filter(None, (said, *causes)))


def _distinct(marks: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the first mark of each line, up to the maximum."""
    seen: set[tuple[str, int]] = set()
    for mark in marks:
        if (mark.file, mark.line) not in seen and len(seen) < _PLACES:
            seen.add((mark.file, mark.line))
            yield mark


def _verdict(verdict: Verdict | None) -> Iterator[Mark]:
    """Yield the places of the culprits, then those where the others wait."""
    if verdict is None or verdict.kind == "none":
        return
    by_place: dict[tuple[str, int, bool], list[int]] = {}
    for site in verdict.sites:
        if not is_library(site.file):
            by_place.setdefault((site.file, site.line, site.rank in verdict.culprits), []).append(site.rank)
    for (file, line, culprit), ranks in sorted(by_place.items(), key=lambda row: not row[0][2]):
        says = f"{say(ranks, 'stop')} here" if culprit else f"{say(ranks, 'wait')} here"
        yield Mark(file=file, line=line, says=f"{says}: {verdict.summary}" if culprit else says)


def _exception_marks(snapshot: Snapshot) -> Iterator[Mark]:
    """Yield the user's own frames of the exception, innermost first."""
    for info in walk(snapshot.exception):
        rank = f"rank {info.rank} " if info.rank is not None else ""
        yield from _frames(own_frames(info.frames), f"{rank}raised {info.type.rsplit('.', 1)[-1]}", snapshot.cell)


def _frames(frames: Sequence[Frame], what: str, cell: str = "") -> Iterator[Mark]:
    for number, frame in enumerate(reversed(frames)):
        says = f"{what} here" if number == 0 else "called from here"
        in_cell = cell if frame.code.strip() and frame.code.strip() in cell else ""
        yield Mark(file=frame.file, line=frame.line, says=says, words=frame.code.strip(), cell=in_cell)


def _output_marks(snapshot: Snapshot) -> Iterator[Mark]:
    """Yield the user's own frames of the exception that ended a rank first, else of the first printed one."""
    log = read_output(snapshot)
    for raised in (*log.outcome.own, *log.events.raised)[:1]:
        yield from _frames(own_frames(raised.frames), "raised")
