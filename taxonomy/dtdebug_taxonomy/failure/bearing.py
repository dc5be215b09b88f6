"""Which printed lines can bear on a failure: a warning, or an exception that was handled, explains no later failure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.failure.log import Log
from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.ranks import Verdict
from dtdebug_taxonomy.snapshot import Snapshot

_INSTEAD = re.compile(
    r"(?i)\busing \S{1,60} instead\b|\b(?:fall(?:ing|s)?|fell) back\b|\bdisabling\b|\bfailed to import\b"
    r"|\bwill be (?:disabled|overwritten|ignored)\b"
)
_ENDED_WELL = re.compile(
    r"(?i)`Trainer\.fit` stopped: `max_(?:epochs|steps)|\btraining (?:is |has )?(?:completed?|finished|done)\b"
    r"|^# avg bus bandwidth {0,8}: {0,4}\d|\bapplication startup complete\b|['\"]train_runtime['\"]: \d"
)
"""What trainers, NCCL's tests and servers print when all went as it should."""
_WARNS = frozenset({"WARNING", "WARN", "W"})
_LAST, _BEGIN, _LONGEST = 500, 400, 2_000
"""Lines from the end in which an end is looked for, characters of such a line and of a warning."""
_TRAINS = 2
"""Lines of progress that show that training goes on: one may be of another attempt, or a plan."""


class Bearing:
    """What the output's lines mean for its failure."""

    def __init__(self, snapshot: Snapshot, log: Log) -> None:
        found = log.outcome
        self._rank = {line.number: line.rank for line in reversed(log.lines) if line.rank is not None}
        self._ends = {r.line: r.text for r in found.own}
        self._own = {one.line for r in found.own for one in (*r.before, r)}
        self._last = max((r.line for r in found.own), default=0)
        self._final = [(r.begin, r.line) for r in (*found.own, *found.echoes)]
        explained = is_explained(snapshot.verdict) or (not found.doubtful and {r.rank for r in found.own} - {None})
        self._echoes = sorted((_begin(r), r.line) for r in found.echoes) if explained else []
        self._handled = sorted((_begin(r), r.line) for r in found.handled)
        self._warned = sorted(log.events.warnings)
        self._interrupted = sorted((_begin(r), r.line) for r in log.events.raised if r.type == "KeyboardInterrupt")
        steps = sorted(log.lines[i].number for rows in log.events.steps.values() for i in rows)
        self._steps = steps
        self._restarted = bool(log.first)
        told = snapshot.verdict is not None and snapshot.verdict.kind not in ("none", "not_understood")
        self.nothing_failed = not (snapshot.situation or snapshot.exception or told or log.events.raised)
        """Neither the output nor its user says that anything did."""
        lines = log.lines if self.nothing_failed else ()
        ends = [line.number for line in lines[-_LAST:] if _ENDED_WELL.search(line.body[:_BEGIN])]
        self._well = max(ends, default=0)
        self._started = max((line.number for line in lines if "Init COMPLETE" in line.body), default=0)
        self._replaced = frozenset(_replaced(lines, self._warned))

    def rank(self, line: int) -> int | None:
        """The rank that printed a line."""
        return self._rank.get(line)

    def ended_by(self, line: int) -> str:
        """The exception that ended a rank, if the line is its last; or nothing."""
        return self._ends.get(line, "")

    def is_overtaken(self, line: int) -> bool:
        """A warning, or part of a handled exception: a rank's own error came later, or all went on."""
        if any(begin <= line <= end for begin, end in self._final):
            return False
        if _within(self._handled, line):
            return True
        return line in self._replaced or (line < self._last and _within(self._warned, line))

    def is_own(self, line: int) -> bool:
        """The line of an exception that a rank's own code met, or that it came from: not one of communication."""
        return line in self._own

    def went_well_after(self, line: int, *, started: bool = False) -> bool:
        """Nothing failed, and below it the output says that all is done, or that communication stands (`started`)."""
        return line < self._well or (started and line < self._started)

    def is_echo(self, line: int) -> bool:
        """Part of what a rank raised because another was lost, whose own exception is here too: it adds nothing."""
        return _within(self._echoes, line)

    def is_interrupted(self, line: int) -> bool:
        """Part of what Ctrl-C printed: where the program was, and not that anything had failed there."""
        return _within(self._interrupted, line)

    def is_trained_after(self, line: int) -> bool:
        """Training made progress after it."""
        if self._restarted or any(begin <= line <= end for begin, end in self._final):
            return False
        return len(self._steps) - bisect_left(self._steps, line + 1) >= _TRAINS


def is_explained(verdict: Verdict | None) -> bool:
    """The ranks were compared, and what the culprits raised is known: what others raised for that adds nothing."""
    if verdict is None or verdict.kind != "dead":
        return False
    return any(claim.what == "raised" and set(claim.ranks) & set(verdict.culprits) for claim in verdict.claims)


def _replaced(lines: Sequence[Line], warned: list[tuple[int, int]]) -> Iterator[int]:
    """Warnings that say what is taken in place of what was asked for: where nothing failed, all went on with that."""
    for line in lines:
        warns = line.level.upper() in _WARNS or _within(warned, line.number)
        if (warns and _INSTEAD.search(line.body[:_LONGEST])) or line.body.endswith("(ignored)"):
            yield line.number


def _begin(raised: Raised) -> int:
    """Where it begins, the message of its logger included."""
    return max(raised.begin - 1, 1)


def _within(spans: list[tuple[int, int]], line: int) -> bool:
    at = bisect_left(spans, (line + 1, 0))
    return any(begin <= line <= end for begin, end in spans[max(at - 4, 0) : at])
