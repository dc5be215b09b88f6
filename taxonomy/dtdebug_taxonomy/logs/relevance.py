"""Decides which printed lines can explain a failure; earlier warnings and handled exceptions cannot."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log, completed_line
from dtdebug_taxonomy.logs.log_end import has_reached_plan
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot

_INSTEAD = re.compile(
    r"(?i)\busing \S{1,60} instead\b|\b(?:fall(?:ing|s)?|fell) back\b|\bdisabling\b|\bfailed to import\b"
    r"|\bwill be (?:disabled|overwritten|ignored)\b"
)
_WARNS = frozenset({"WARNING", "WARN", "W"})
_LONGEST = 2_000
"""Characters examined of a warning."""
_RECOVERED = 5
"""Steps without what an earlier one reported, from which it no longer holds."""
_TROUBLE = re.compile(
    r"(?i)fail|\berr(?:or|no)\b|error\(|exception|timed? ?out|refused|reset by|\bstale\b|unreachable"
    r"|\bretr(?:y|ies|ying)\b"
)
"""Words of a line that reports something that went wrong, which may have passed."""
_MADE_GOOD = re.compile(
    r"(?i)\b(?:recovered|succeeded|succeeds|ok|okay|reconnected|successful(?:ly)?)\b"
    r"|\bafter \d{1,4} (?:retr(?:y|ies)|attempts?)\b"
)
_NOT_GOOD = re.compile(r"(?i)\b(?:not|no|never|without|un\w{1,20}|fail\w{0,4}|giv(?:e|es|ing) up|gave up)\b")
_PARTED = frozenset({"skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "not_arrived"})
"""Kinds of verdicts that name a rank which is elsewhere than the others."""
_FAR = 200
"""Lines of all processes among which those are looked for."""
_SOON = 8
"""Lines of its own in which a process reports that it recovered."""
_TRAINS = 2
"""Minimum lines of progress that show that training continues: one may be of another attempt, or a plan."""


class Bearing:
    """Relevance of the output's lines to its failure."""

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
        self._lines = log.lines
        verdict = snapshot.verdict
        self._apart = frozenset(verdict.culprits) if verdict is not None and verdict.kind in _PARTED else frozenset()
        steps = sorted(log.lines[i].number for rows in log.events.steps.values() for i in rows)
        self._steps = steps
        self._restarted = bool(log.first)
        told = snapshot.verdict is not None and snapshot.verdict.kind not in ("none", "not_understood")
        self.nothing_failed = not (snapshot.situation or snapshot.exception or told or log.events.raised)
        """True if neither the output nor the user reports a failure."""
        lines = log.lines if self.nothing_failed else ()
        ended = snapshot.situation or snapshot.exception or found.own or found.exits
        self._well = 0 if ended else completed_line(log)
        self.is_completed = self._well > 0 or (self.nothing_failed and not ended and has_reached_plan(log))
        """True if the run says that its training was completed, or has made its last step, and nothing failed: ends
        that follow are no failure."""
        self._started = max((line.number for line in lines if "Init COMPLETE" in line.body), default=0)
        self._replaced = frozenset(_substitution_lines(lines, self._warned))

    def rank(self, line: int) -> int | None:
        """Return the rank that printed a line, or None."""
        return self._rank.get(line)

    def ended_by(self, line: int) -> str:
        """Return the exception that ended a rank if the line is its last, else ""."""
        return self._ends.get(line, "")

    def is_overtaken(self, line: int) -> bool:
        """True for a warning or a handled exception after which a rank's own error came, or all ranks continued."""
        if any(begin <= line <= end for begin, end in self._final):
            return False
        if _is_in_span(self._handled, line):
            return True
        return line in self._replaced or (line < self._last and _is_in_span(self._warned, line))

    def is_own(self, line: int) -> bool:
        """True for a line of an exception that a rank's own code raised, or of its cause; not one of communication."""
        return line in self._own

    def went_well_after(self, line: int, *, started: bool = False) -> bool:
        """True if nothing failed and a later line reports completion, or established communication (`started`)."""
        return line < self._well or (started and line < self._started)

    @property
    def outlived(self) -> int:
        """First line from which what is printed may explain a failure: before it, training made progress."""
        if self._restarted or len(self._steps) < _TRAINS:
            return self._well
        return max(self._steps[-_TRAINS], self._well)

    def is_step(self, line: int) -> bool:
        """True if the line reports on a step itself."""
        place = bisect_left(self._steps, line)
        return place < len(self._steps) and self._steps[place] == line

    def is_recovered(self, line: int) -> bool:
        """True if a step reports something that the steps after it do not, as in the warm-up of a loss scale."""
        return self.is_step(line) and self.steps_after(line) >= _RECOVERED

    def steps_after(self, line: int) -> int:
        """Return the number of lines of progress after a line, of all attempts."""
        return len(self._steps) - bisect_left(self._steps, line + 1)

    def is_made_good(self, line: int) -> bool:
        """True if a line reports trouble that did not last: training continued, and its process says that it recovered.

        Also if the ranks wait in different calls, and a rank on neither side of the odd one reported it long before.
        """
        place = bisect_left(self._lines, line, key=lambda row: row.number)
        if place == len(self._lines) or self._lines[place].number != line:
            return False
        row = self._lines[place]
        after = self.steps_after(line)
        if after < _TRAINS or not _TROUBLE.search(row.body[:_LONGEST]):
            return False
        if self._apart and row.rank is not None and row.rank not in self._apart and after >= _RECOVERED:
            return True
        own = (each for each in self._lines[place + 1 : place + 1 + _FAR] if each.who == row.who)
        return _says_made_good(row.body.rpartition(";")[2] if ";" in row.body else "") or any(
            _says_made_good(each.body) for each in islice(own, _SOON)
        )

    def is_past(self, line: int, *, scheduler: bool) -> bool:
        """True if training continued after a layer's report, or a scheduler ended what was left of a completed run."""
        return self.is_trained_after(line) or (scheduler and self.is_completed)

    def is_echo(self, line: int) -> bool:
        """True for a line of an exception raised for a lost peer, if the peer's own exception is in the output too."""
        return _is_in_span(self._echoes, line)

    def is_interrupted(self, line: int) -> bool:
        """True for output of Ctrl-C: it shows where the program was, and not that anything failed there."""
        return _is_in_span(self._interrupted, line)

    def is_trained_after(self, line: int) -> bool:
        """True if training made progress after the line."""
        if self._restarted or any(begin <= line <= end for begin, end in self._final):
            return False
        return self.steps_after(line) >= _TRAINS

    def had_started(self, line: int) -> bool:
        """True if a step followed the line, and then an exception that ended a rank: what was built before worked."""
        place = bisect_left(self._steps, line + 1)
        return not self._restarted and place < len(self._steps) and self._steps[place] < self._last


def is_explained(verdict: Verdict | None) -> bool:
    """True if the ranks were compared and a culprit's exception is known: other ranks' exceptions then add nothing."""
    if verdict is None or verdict.kind != "dead":
        return False
    return any(claim.what == "raised" and set(claim.ranks) & set(verdict.culprits) for claim in verdict.claims)


def _says_made_good(text: str) -> bool:
    head = text[:_LONGEST]
    return _MADE_GOOD.search(head) is not None and not _NOT_GOOD.search(head)


def _substitution_lines(lines: Sequence[Line], warned: list[tuple[int, int]]) -> Iterator[int]:
    """Yield warnings that name a substitute for what was requested: if nothing failed, the run continued with it."""
    for line in lines:
        warns = line.level.upper() in _WARNS or _is_in_span(warned, line.number)
        if (warns and _INSTEAD.search(line.body[:_LONGEST])) or line.body.endswith("(ignored)"):
            yield line.number


def _begin(raised: PrintedException) -> int:
    """Return the first line of an exception, including the message of its logger."""
    return max(raised.begin - 1, 1)


def _is_in_span(spans: list[tuple[int, int]], line: int) -> bool:
    at = bisect_left(spans, (line + 1, 0))
    return any(begin <= line <= end for begin, end in spans[max(at - 4, 0) : at])
