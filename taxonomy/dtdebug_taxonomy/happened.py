"""The first line of every answer: what happened, on which rank, where; and what supports it.

Front ends show these words and no others, so that all of them give one reading of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from dtdebug_taxonomy.advice import Reason
from dtdebug_taxonomy.claims import cited
from dtdebug_taxonomy.endings import Ending, endings
from dtdebug_taxonomy.failure.outcome import outcome
from dtdebug_taxonomy.failure.raised import Raised
from dtdebug_taxonomy.failure.reading import read_output
from dtdebug_taxonomy.failure.roles import role_of
from dtdebug_taxonomy.finding import Finding, plain
from dtdebug_taxonomy.frames import own_frame
from dtdebug_taxonomy.ranks import Frame, Verdict
from dtdebug_taxonomy.signs import speaks_of_several
from dtdebug_taxonomy.snapshot import ExceptionInfo, Snapshot, walk

_SENTENCE, _MOST = 400, 12
_SAYS_HANG = {("hang-said",), ("manifestation", "hang")}
_CODE_ONLY = re.compile(r"NCCL error in: \S{1,200} (?:unhandled|internal|invalid|remote) ")
"""NCCL's code of an error, whose reason stands below it (`Last error:`)."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One claim as a sentence, with the record that it rests on."""

    text: str
    record: str = ""
    """Where it can be looked up: `line 12 of the output`."""


def happened(snapshot: Snapshot, lone: Ending | None) -> tuple[str, tuple[Seen, ...]]:
    """One sentence and what supports it; empty where neither ranks nor an exception (at hand or `lone`) tell."""
    verdict = snapshot.verdict
    if verdict is not None and verdict.kind != "none" and verdict.summary:
        return plain(verdict.summary, _SENTENCE), seen(verdict)
    raised: ExceptionInfo | Raised | None = next(iter(walk(snapshot.exception)), None)
    if raised is None and ("Traceback" in snapshot.output or "ray::" in snapshot.output):
        raised = next((r for r in outcome(read_output(snapshot)).own if r.frames), None)
    if raised is None and lone is not None and not _CODE_ONLY.match(lone.message):
        text = plain(worded(lone.type, lone.message), _SENTENCE)
        return text, (_quoted(text, lone.line),)
    if raised is None:
        return "", ()
    message = raised.message.strip().split("\n", 1)[0]
    ended = role_of(raised.type) == "launcher"  # its parent raised it
    who = f"Rank {raised.rank}" if raised.rank is not None else getattr(raised, "actor", "")
    rank = f"{who} {'failed:' if ended else 'raised'} " if who else ""
    text = message if ended and message else worded(raised.type, message)
    supports = (_quoted(text, raised.line),) if isinstance(raised, Raised) else ()
    return plain(f"{rank}{text}{located(own_frame(raised.frames))}", _SENTENCE), supports


def worded(kind: str, message: str) -> str:
    """An exception in a sentence, by the name of its class alone: `KeyError: 'x'`."""
    return f"{kind.rpartition('.')[2]}{f': {message}' if message else ''}"


def located(frame: Frame | None) -> str:
    """Where it was raised, behind it: ` at train.py:12 in main`; empty where that is not known."""
    return f" at {_place(frame)}" if frame is not None else ""


def raised_in_output(snapshot: Snapshot) -> bool:
    """The output shows an exception that ended a rank."""
    verdict = snapshot.verdict
    return verdict is not None and verdict.kind == "dead" and any(c.what == "raised" for c in verdict.claims)


def contradicted(snapshot: Snapshot, findings: Iterable[Finding]) -> tuple[str, ...]:
    """What the user says otherwise than the output shows: both are told, and the output counts."""
    hangs = any(f.source == "said" and (f.evidence, *f.values) in _SAYS_HANG for f in findings)
    if not (hangs and raised_in_output(snapshot)):
        return ()
    return ("You describe a hang; the output shows an exception. The ranks that wait for that one hang since then.",)


def _place(frame: Frame) -> str:
    """`train.py:12 in main`; `cell In[4], line 2` in a notebook."""
    if not frame.file.startswith("cell "):
        return f"{frame.file}:{frame.line} in {frame.function}"
    return f"{frame.file}, line {frame.line}{'' if frame.function == '<module>' else f', in {frame.function}'}"


def _quoted(words: str, line: int, rank: int | None = None) -> Seen:
    where = f"rank {rank}, " if rank is not None else ""
    return Seen(text=f'"{plain(" ".join(words.split()), 200)}"', record=f"{where}line {line} of the output")


def first_ending(snapshot: Snapshot) -> Ending | None:
    """What ended the program by its output, where neither the ranks nor an exception at hand say it."""
    return None if snapshot.exception is not None or snapshot.verdict is not None else next(endings(snapshot), None)


def alone(snapshot: Snapshot, ending: Ending | None) -> Ending | None:
    """It, if it is the last line of an exception without its traceback, in a text that speaks of several."""
    if ending is None or ending.told or "Traceback" in snapshot.output:
        return None
    return ending if ending.message and speaks_of_several(snapshot) else None


def warned(ending: Ending | None) -> tuple[str, tuple[Seen, ...]]:
    """It in words, if it is no exception; else empty."""
    if ending is None or not ending.told:
        return "", ()
    text = plain(f"{ending.type}: {ending.message}", _SENTENCE)
    return text, (_quoted(text, ending.line, ending.rank),)


def ended(ending: Ending | None) -> tuple[str, tuple[Seen, ...]]:
    """The exception with its traceback, where it may be an echo and nothing else tells what happened."""
    if ending is None or not ending.frames or not ending.message:
        return "", ()
    last = next((row for name, row in pairwise(ending.below) if name.startswith("Last error")), "")
    message = last.strip() if last and _CODE_ONLY.match(ending.message) else ending.message
    quoted = _quoted(worded(ending.type, ending.message), ending.line, ending.rank)
    return plain(f"{worded(ending.type, message)}{located(own_frame(ending.frames))}", _SENTENCE), (quoted,)


def seen(verdict: Verdict | None) -> tuple[Seen, ...]:
    """The claims of a verdict, the strongest first."""
    if verdict is None or verdict.kind == "none":
        return ()
    claimed = [Seen(text=plain(c.text, _SENTENCE), record=plain(cited(c.record), 200)) for c in verdict.claims]
    said = {row.text for row in claimed}
    rest = [Seen(text=plain(line, _SENTENCE)) for line in verdict.evidence]
    return (*claimed, *(row for row in rest if row.text not in said))[:_MOST]


def printed(reasons: Iterable[Reason]) -> tuple[str, tuple[Seen, ...]]:
    """What the output says where no rank's exception is known: what the line means that tells most, and the line."""
    for r in reasons:
        if r.weight > 0 and r.source == "printed" and "=" not in r.evidence and r.words:
            means = r.means if r.rank is None else re.sub(r"\AThis rank\b", f"Rank {r.rank}", r.means)
            return plain(means, _SENTENCE), (_quoted(r.words, r.line, r.rank),)
    return "", ()
