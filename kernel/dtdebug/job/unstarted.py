"""A command that failed before any rank was seen: what it printed is what happened."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from dtdebug.records.folder import Run
from dtdebug_taxonomy.claims import Claim, Record, texts
from dtdebug_taxonomy.endings import endings
from dtdebug_taxonomy.failure.reading import read_output
from dtdebug_taxonomy.finding import plain
from dtdebug_taxonomy.frames import own_frame
from dtdebug_taxonomy.happened import located, worded
from dtdebug_taxonomy.ranks import RankState, Verdict
from dtdebug_taxonomy.snapshot import Snapshot

_FAILS = re.compile(r"(?i)\b(?:error|fatal|failed|no such|not found|cannot|can't|could not|unable|denied|refused)\b")
_PROGRAM = re.compile(r"[/\\](?:bin|Scripts)[/\\][^/\\.]{1,100}\Z")
"""The few lines with which an installed command begins."""
_LAST = 200
"""Lines from the end in which the one that tells of the failure is looked for."""
_WORDS = 300


def unstarted(verdict: Verdict, states: Sequence[RankState], snapshot: Snapshot, run: Run | None) -> Verdict:
    """The verdict, or, where no rank was seen and the command has failed, what it said last."""
    if states or verdict.kind != "not_understood" or verdict.claims or run is None or not run.status:
        return verdict
    claim = _raised(snapshot) or _said(snapshot)
    if claim is None:
        words = f"ended with exit status {run.status}" if run.status > 0 else f"was ended by signal {-run.status}"
        return msgspec.structs.replace(verdict, summary=f"The command {words} and printed nothing; no rank was seen.")
    return msgspec.structs.replace(
        verdict,
        summary=f"{claim.words.rstrip('.;')}; no rank was seen.",
        claims=(claim,),
        evidence=texts((claim,)),
    )


def _raised(snapshot: Snapshot) -> Claim | None:
    """The last exception that was printed, at the line of the program that it went through."""
    last = next((e for e in endings(snapshot) if e.line), None)
    if last is None:
        return None
    frame = own_frame(last.frames)
    started = frame is not None and not _PROGRAM.search(frame.file)
    text = plain(worded(last.type, last.message), _WORDS).rstrip(".")
    record = Record(source="output", line=last.line)
    return Claim(what="printed", ranks=(), record=record, words=f"{text}{located(frame if started else None)}")


def _said(snapshot: Snapshot) -> Claim | None:
    """The last line that speaks of a failure, else the last line."""
    lines = [line for line in read_output(snapshot).lines if line.body.strip()][-_LAST:]
    told = next((line for line in reversed(lines) if _FAILS.search(line.body)), lines[-1] if lines else None)
    if told is None:
        return None
    record = Record(source="output", line=told.number)
    return Claim(what="printed", ranks=(), record=record, words=plain(told.body.strip(), _WORDS))
