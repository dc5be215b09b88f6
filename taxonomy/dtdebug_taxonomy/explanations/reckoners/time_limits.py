"""Stated times until a job dies against the default time limits of the layers that wait. Unit: seconds.

Rules: a process group waits 10 minutes with NCCL (30 before torch 2.2) and 30 minutes with other backends, a TCPStore
300 seconds (PyTorch, "Distributed communication package", https://docs.pytorch.org/docs/stable/distributed.html); a
node waits 600 seconds for the others to join the rendezvous of torchrun (`RendezvousTimeout`,
https://docs.pytorch.org/docs/stable/elastic/rendezvous.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, reason_of_figures
from dtdebug_taxonomy.text.lazy_re import lazy_re
from dtdebug_taxonomy.text.pattern_matcher import clip_lines, plain

_NUMBERS = {"five": 5, "ten": 10, "thirty": 30, "half an": 30}
_TIME = lazy_re(
    r"(?i)(?<![\w.,:/-])(?P<n>\d{1,5}|five|ten|thirty|half an)[ -]?(?P<unit>s|secs?|seconds?|min|mins|minutes?|hour)\b"
)
_SECONDS = {"s": 1, "m": 60, "h": 60}
_ENDS = lazy_re(
    r"(?i)\b(?:dies|die|died|killed?|kills|abort\w{0,3}|torn down|times? out|timed out|time-?outs?|gives? up|gave up"
    r"|(?:is|are) gone|quits?|exits?|crash\w{0,3}|fails?|failed|terminat\w{1,3}|watchdog|ends|stops|raises?|throws?)\b"
)
_UNTIL = lazy_re(r"(?i)\b(?:after|exactly|precisely|within|into|later|mark|reached|always at|waits?(?: for)?|for)\b")
_WORK = lazy_re(r"(?i)\b(?:takes?|took|needs?|lasts?|longer than|every)\b[^.\n]{0,24}$")
"""Words before a time that is the length of some work."""
_OWN_LIMIT = lazy_re(
    r"(?i)\btimedelta\(|\btime_?out(?:_\w{1,12})? ?[=:]|--[\w-]{0,30}timeout"
    r"|\b(?:set|raised?|increased?|changed|our|with a) (?:\w{2,8} ){0,3}time-?outs?\b"
)
_OWN_VALUE = lazy_re(
    r"(?i)\btimedelta\((?P<unit>seconds|minutes|hours) ?= ?(?P<n>\d{1,6})\)"
    r"|(?<![a-z])(?:(?:ddp|nccl|dist|comm|process_group|pg)_)?time_?out(?:_seconds|_s)? ?[=:] ?"
    r"(?P<s>\d{1,6})\b(?![.\d])"
)
_WAITED = lazy_re(r"\bTimeout\(ms\)=(?P<limit>\d{3,9})\b|(?<![\w.=])(?P<ms>\d{4,9}) ?(?:ms|milliseconds)\b")
_NEAR = 0.05
"""Relative difference of a time that was waited and its limit."""
_SENTENCE = lazy_re(r"[.!?](?=\s)|\n\s*\n")
_JOINS = lazy_re(r"(?i)\brendez-?vous\b|\brdzv|\bjoin(?:s|ed|ing)?\b|\btorchrun\b[^.]{0,80}\bnodes?\b")
_SETS_UP = lazy_re(
    r"(?i)\binit_process_group|\btcp ?store\b|\btcp://|\bmaster\b|\bconnect|\brendez-?vous\b|\bstart-?up\b"
)
_GLOO = lazy_re(r"(?i)\b(?:gloo|mpi backend)\b")
_DEEPSPEED = lazy_re(r"(?i)\bdeepspeed\b|\bzero-?[123]\b")


class _Limit(NamedTuple):
    what: str
    waits: str
    fix: str


_GROUP_FIX = (
    "Do the long work of one rank before the group is made, or give the group more time:"
    " init_process_group(..., timeout=timedelta(hours=2)). If no rank has long work, see which one does not come."
)
_JOIN = _Limit(
    "the default join_timeout of torchrun's rendezvous",
    "a node waited that long for nodes that did not join",
    "Give the rendezvous more time: `torchrun --rdzv-conf join_timeout=3600,timeout=3600 ...` on every node, or start"
    " the nodes together.",
)
_STORE = _Limit(
    "the default time limit of the TCPStore",
    "a rank waited that long for the store of rank 0, or for ranks that did not come",
    "Start all nodes within that time, rank 0 first, or pass a longer one:"
    " init_process_group(..., timeout=timedelta(minutes=30)). See that MASTER_ADDR and the port are reachable.",
)


class StatedLimit(NamedTuple):
    """A stated time that is the default time limit of a layer."""

    says: str
    fix: str
    words: str
    line: int


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the layer whose default time limit is the time after which the job is said to end."""
    found = find_limit(context.incident.prose.text)
    if found is not None:
        told = Reason(
            evidence="stated-time-is-a-limit",
            means="The time that you state is the default of that limit.",
            source="said",
            weight=0.0,  # the event states it already
            line=found.line,
            words=found.words,
        )
        why = "What ends the job is a limit for waiting; why the other side did not come in time is the cause."
        yield explanation_for(context.symptom, found.says, why, found.fix, 0.5, told)


def explain_own(context: Context) -> Iterator[Explanation]:
    """Yield that a limit which the writer has set ends the job, if the time that was waited is that limit."""
    waited = [int(m["limit"] or m["ms"]) / 1000 for m in _WAITED.finditer(context.incident.texts)]
    for found in _OWN_VALUE.finditer(context.incident.said):
        seconds = int(found["s"] or found["n"]) * (_SECONDS[found["unit"][0].lower()] if found["unit"] else 1)
        if not any(abs(each - seconds) <= _NEAR * seconds for each in waited):
            continue
        yield explanation_for(
            context.symptom,
            f"{_spell(seconds)} is the time limit that you set: a rank waited that long for another one",
            "What one rank does alone in between (evaluation, saving, compiling, preparing data) has to end within it.",
            "Set it above the longest work that one rank does alone, with a margin (30 minutes is usual), or leave it"
            " out. If no rank has long work, see which one does not come.",
            0.5,
            reason_of_figures(context.incident, "own-limit-ends-it", found),
        )
        return


def find_limit(prose: str) -> StatedLimit | None:
    """Return the limit that ends the job, by the time that a text states; None if the user has set limits."""
    text = clip_lines(prose)
    if not text or _OWN_LIMIT.search(text):
        return None
    begin = 0
    for end in (*(m.end() for m in _SENTENCE.finditer(text)), len(text)):
        sentence, start, begin = text[begin:end], begin, end
        found = next((m for m in _TIME.finditer(sentence) if _is_end(sentence, m)), None)
        limit = _limit_of(_seconds(found), text) if found is not None else None
        if found is not None and limit is not None:
            line = text.count("\n", 0, start + found.start()) + 1
            words = plain(" ".join(sentence.split()))[:200]
            return StatedLimit(f"{_spell(_seconds(found))} is {limit.what}: {limit.waits}", limit.fix, words, line)
    return None


def _is_end(sentence: str, found: re.Match[str]) -> bool:
    """True if the time is how long it lasts until it ends."""
    return (
        _ENDS.search(sentence) is not None
        and _UNTIL.search(sentence) is not None
        and _WORK.search(sentence[max(found.start() - 40, 0) : found.start()]) is None
    )


def _seconds(found: re.Match[str]) -> int:
    n = found["n"].lower()
    return (_NUMBERS[n] if n in _NUMBERS else int(n)) * _SECONDS[found["unit"][0].lower() if n != "half an" else "h"]


def _limit_of(seconds: int, text: str) -> _Limit | None:
    """Return the limit of that length that the text can be about."""
    if seconds == 300 and _SETS_UP.search(text):
        return _STORE
    if seconds == 600 and _JOINS.search(text):
        return _JOIN
    waited = "a rank waited that long in a collective for another one"
    if seconds == 600 and not _GLOO.search(text):
        return _Limit("the default time limit of a process group with NCCL", waited, _GROUP_FIX)
    if seconds == 1800:
        of = "gloo" if _GLOO.search(text) else "DeepSpeed" if _DEEPSPEED.search(text) else ""
        named = f"with {of}" if of == "gloo" else f"under {of}" if of else "with gloo, and with NCCL before torch 2.2"
        return _Limit(f"the default time limit of a process group {named}", waited, _GROUP_FIX)
    return None


def _spell(seconds: int) -> str:
    return f"{seconds // 60} minutes" if seconds >= 600 else f"{seconds} seconds"
