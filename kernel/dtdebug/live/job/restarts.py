"""Attempts of a job: ranks restarted after each failure, or never started, so that only printed text remains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.privacy.sanitize import one_line
from dtdebug.storage.run_folder import Run
from dtdebug_taxonomy.diagnosis.headline import format_exception, format_place
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.logs.exits import signal_name
from dtdebug_taxonomy.logs.log import read_output
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.stacks.frames import own_frame
from dtdebug_taxonomy.text.pattern_matcher import plain

_FAILS = re.compile(r"(?i)\b(?:error|fatal|failed|no such|not found|cannot|can't|could not|unable|denied|refused)\b")
_PROGRAM = re.compile(r"[/\\](?:bin|Scripts)[/\\][^/\\.]{1,100}\Z")
"""Path of an installed command, whose few lines only start the program."""
_LAST = 200
"""Number of lines from the end that are searched for the failure."""
_WORDS = 300
_COUNT = "TORCHELASTIC_RESTART_COUNT"
_SHOWN = 200
"""Maximum number of characters of an exception in a note."""


def verdict_without_ranks(
    verdict: Verdict, states: Sequence[RankState], snapshot: Snapshot, run: Run | None
) -> Verdict:
    """Return the command's last words if it failed and no rank was seen; else `verdict`."""
    if states or verdict.kind != "not_understood" or verdict.claims or run is None or not run.status:
        return verdict
    end = f"ended with exit status {run.status}" if run.status > 0 else f"was ended by {signal_name(-run.status)}"
    exception = _exception_claim(snapshot)
    claim = exception or _last_line_claim(snapshot)
    if claim is None:
        return msgspec.structs.replace(verdict, summary=f"The command {end} and printed nothing; no rank was seen.")
    said = claim.words.rstrip(".;")
    if exception is None and not _FAILS.search(said):
        said = f"The command {end}; its last line is `{said}`"
    return msgspec.structs.replace(
        verdict,
        summary=f"{said}; no rank was seen.",
        claims=(claim,),
        evidence=texts((claim,)),
    )


def _exception_claim(snapshot: Snapshot) -> Claim | None:
    """Return a claim on the last printed exception, at the program's line that it passed through."""
    last = next((e for e in Incident(snapshot).errors if e.line), None)
    if last is None:
        return None
    frame = own_frame(last.frames)
    started = frame is not None and not _PROGRAM.search(frame.file)
    text = plain(format_exception(last.type, last.message), _WORDS).rstrip(".")
    record = Record(source="output", line=last.line)
    return Claim(what="printed", ranks=(), record=record, words=f"{text}{format_place(frame if started else None)}")


def _last_line_claim(snapshot: Snapshot) -> Claim | None:
    """Return a claim on the last line that reports a failure, else on the last line."""
    lines = [line for line in read_output(snapshot).lines if line.body.strip()][-_LAST:]
    told = next((line for line in reversed(lines) if _FAILS.search(line.body)), lines[-1] if lines else None)
    if told is None:
        return None
    record = Record(source="output", line=told.number)
    return Claim(what="printed", ranks=(), record=record, words=plain(told.body.strip(), _WORDS))


class Attempts(NamedTuple):
    """Ranks of the last attempt, and of earlier ones."""

    last: tuple[RankState, ...]
    earlier: tuple[RankState, ...]
    """Ranks that have ended; one that is still running may hold what the last attempt needs."""

    def of_last(self, output: str) -> str:
        """Return the output with empty lines instead of those of earlier attempts.

        They reach to the last line that names an ended process of these, or has its exception once more than the ranks
        of the last attempt have raised it.
        """
        if not self.earlier:
            return output
        rows = output.split("\n")
        ended = [f"(pid: {state.pid})" for state in self.earlier if state.pid]
        last = max((n for n, row in enumerate(rows) if any(pid in row for pid in ended)), default=-1)
        for words in {_first_line(state.exception) for state in self.earlier if state.exception}:
            again = sum(_first_line(state.exception) == words for state in self.last)
            found = [n for n, row in enumerate(rows) if words in row]
            last = max(last, *found[: len(found) - again][-1:], -1)
        return "\n".join(("" if n <= last else row) for n, row in enumerate(rows))

    @property
    def since(self) -> float:
        """Return when the latest of the earlier attempts ended; 0.0 without one."""
        return max(((s.time or 0.0) + s.clock_offset for s in self.earlier), default=0.0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return one note for each earlier attempt: what ended it."""
        return tuple(
            _attempt_note(number, self.earlier) for number in sorted({_number(state) for state in self.earlier})
        )


def attempt(states: Sequence[RankState]) -> int:
    """Return the number of the last known attempt; 0 if no launcher counts them."""
    return max(map(_number, states), default=0)


def attempts(states: Sequence[RankState]) -> Attempts:
    """Split the ranks by attempt; if no launcher counts attempts, all belong to the last one."""
    newest = attempt(states)

    def is_left(state: RankState) -> bool:
        return _COUNT in state.environment and _number(state) < newest and state.alive is not True

    return Attempts(tuple(s for s in states if not is_left(s)), tuple(filter(is_left, states)))


def _number(state: RankState) -> int:
    text = state.environment.get(_COUNT, "")
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _first_line(exception: str) -> str:
    return exception.partition("\n")[0]


def _attempt_note(number: int, states: Iterable[RankState]) -> str:
    raised = [s for s in states if s.exception and _number(s) == number]
    first = min(raised, key=lambda s: (s.time or 0.0) + s.clock_offset, default=None)
    why = f": rank {first.rank} raised {one_line(first.exception, _SHOWN)}" if first else ""
    return f"attempt {number + 1} ended before and is left out{why}"
