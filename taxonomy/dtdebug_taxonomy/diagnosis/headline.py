"""The headline of every answer: what happened, on which rank, where; and what supports it.

Front ends show these words and no others, so that all of them give one reading of a failure. `HEADLINES` lists where
one can come from, in order of precedence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from dtdebug_taxonomy.explanations.model import Explanation, Reason
from dtdebug_taxonomy.explanations.ranked_causes import reason_of
from dtdebug_taxonomy.explanations.reckoners.time_limits import find_limit
from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.certainty import Certainty
from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import STRENGTHS
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.exception_roles import is_summary, role_of
from dtdebug_taxonomy.logs.final_errors import FinalError
from dtdebug_taxonomy.logs.log import Log, failed_after_completion
from dtdebug_taxonomy.logs.message_detail import add_detail, used_of_limit
from dtdebug_taxonomy.model.claims import cite_record
from dtdebug_taxonomy.model.ranks import Frame, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, walk
from dtdebug_taxonomy.stacks.frames import own_frame
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.whole_parts import first_statement, shorten_lists

_SENTENCE, _MOST = 400, 12
_SAYS_HANG = {("hang-said",), ("manifestation", "hang")}
_NEAR = 2
"""Lines from the one that names a cause on in which its amounts are looked for."""
_CODE_ONLY = re.compile(r"NCCL error in: \S{1,200} (?:unhandled|internal|invalid|remote) ")
"""NCCL's error code; the reason is printed below it (`Last error:`)."""
_FRAME = re.compile(r"\Ain \w|\", line \d")
"""Words found in a frame of a traceback: they say where it was, not what."""
_ALTERNATIVES = re.compile(r"\bor\b")
_SAYS_LESS = re.compile(r"\b(?:exit|exited|exits|exitcode|return code|signal|INFO)\b|\A(?:[\[{\"'(]|return )|:\Z")
_BEFORE = re.compile(
    r"\A(?:(?:[IWEF] )?\S{1,300}\.(?:py|cc):\d{1,6}[\]:]{1,2} ?(?:\w{1,40}Warning: )?"
    r"|what\(\): {1,4}\[enforce fail at [^\]]{1,300}\] "
    r"|[^\[\n]{0,120}\d{1,9}/\d{1,9} \[[^\]\n]{1,120}\] ?(?:[A-Z]{4,8}: )?)"
)
"""Prefix of a message: its place in a library, the test of an assertion, a progress bar."""
_NAMES = re.compile(r"[\d'\"`/]")
"""A number, path or quoted name."""
_WORD, _WORDS = re.compile(r"[A-Za-z]{2,}"), 4
"""Minimum number of words of a line that says what happened."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A claim as a sentence, with its record."""

    text: str
    record: str = ""
    """Place to look it up: `line 12 of the output`."""


class Outlook(NamedTuple):
    """Everything a headline may rest on."""

    knowledge: Knowledge
    incident: Incident
    findings: tuple[Finding, ...]
    certainty: Certainty
    why: tuple[Reason, ...]
    """Reasons of the first symptom."""
    causes: tuple[Explanation, ...]


Headline = tuple[str, tuple[Seen, ...]]
"""The sentence, and the claims that support it; ("", ()) if there is none."""


def headline(outlook: Outlook) -> Headline:
    """Return the first headline that is not empty."""
    text, supports = next((found for rule in HEADLINES if (found := rule(outlook))[0]), ("", ()))
    return _with_completion(outlook, _with_amounts(outlook, text)) if text else "", supports


def _with_completion(o: Outlook, text: str) -> str:
    """Say that the training was completed, if only the end of the processes went wrong."""
    return f"After the training was completed: {text}" if failed_after_completion(o.incident.log) else text


def _with_amounts(o: Outlook, text: str) -> str:
    """Add what was used of which limit, where the line that names the cause, or the next one, prints it."""
    first = next((r for r in o.causes[0].because if r.source == "printed"), None) if o.causes else None
    if first is None or not o.causes[0].named or not first.line:
        return text
    rows = o.incident.snapshot.output.split("\n")
    near = (row for n, row in enumerate(rows, 1) if 0 <= o.incident.snapshot.true_line(n) - first.line < _NEAR)
    told = next(filter(None, map(used_of_limit, near)), "")
    if not told or told.partition(" of ")[0] in text:
        return text
    return plain(f"{text.rstrip('. ')} ({told}).", _SENTENCE)


def of_knock_on(o: Outlook) -> Headline:
    """Quote the most telling follow-up error, if nothing else is known of the failure."""
    if o.certainty != "echo" or o.incident.snapshot.verdict is not None:
        return "", ()
    lone = lone_error(o.incident)
    if lone is not None and not is_summary(f"{lone.type}: {lone.message}"):
        return "", ()
    rows = [f for f in o.findings if _is_knock_on(o.knowledge, f) and not o.knowledge.evidence[f.evidence].catch_all]
    rows.sort(key=lambda f: -max((STRENGTHS[s] for s in o.knowledge.evidence[f.evidence].symptoms.values()), default=0))
    return quote_first_reason(reason_of(o.knowledge, f, 1.0) for f in rows)


def of_unexplained_wait(o: Outlook) -> Headline:
    """Quote what the output names above a wait that the ranks do not explain: it may have kept another rank away."""
    verdict = o.incident.snapshot.verdict
    if verdict is None or verdict.kind != "not_understood" or o.incident.snapshot.ranks or verdict.culprits:
        return "", ()
    waits = min((c.record.line for c in verdict.claims if c.record.line), default=0)
    before = (r for r in o.why if r.line <= waits and not _FRAME.search(r.words) and not _is_vague(o.knowledge, r))
    first, quoted = quote_first_reason(_telling(o) or before, o.incident.log)
    known, supports = of_failure(o)
    return first or known, (*quoted, *supports)


def of_failure(o: Outlook) -> Headline:
    """State what the ranks, the exception at hand or a lone printed error show."""
    snapshot = o.incident.snapshot
    verdict, lone = snapshot.verdict, lone_error(o.incident)
    if verdict is not None and verdict.kind != "none" and verdict.summary:
        return plain(verdict.summary, _SENTENCE), claims_seen(verdict)
    raised: ExceptionInfo | PrintedException | None = next(iter(walk(snapshot.exception)), None)
    if raised is None and ("Traceback" in snapshot.output or "ray::" in snapshot.output):
        raised = next((r for r in o.incident.log.outcome.own if r.frames), None)
    if raised is None and lone is not None and not _CODE_ONLY.match(lone.message):
        text = _state(format_exception(lone.type, add_detail(lone.message, lone.below)))
        return text, (_quote(text, lone.line),)
    if raised is None:
        return "", ()
    first, *below = raised.message.strip().split("\n")
    if isinstance(raised, PrintedException):
        below = [text for _, text in raised.below]
    message = add_detail(first, below)
    message = first_statement("\n".join((first, *below))) if message == first else message
    ended = role_of(raised.type) == "launcher"  # its parent raised it
    who = f"Rank {raised.rank}" if raised.rank is not None else getattr(raised, "actor", "")
    rank = f"{who} {'failed:' if ended else 'raised'} " if who else ""
    text = message if ended and message else format_exception(raised.type, message)
    supports = (_quote(text, raised.line),) if isinstance(raised, PrintedException) else ()
    return _state(f"{rank}{text}{format_place(own_frame(raised.frames))}"), supports


def of_reasons(o: Outlook) -> Headline:
    """Quote the most specific printed line of the first cause or symptom."""
    if o.certainty not in ("settled", "leaning", "apart"):
        return "", ()
    rows = (*_telling(o), *(r for r in o.why if not _is_vague(o.knowledge, r)))
    return quote_first_reason(rows, o.incident.log)


def of_layer_error(o: Outlook) -> Headline:
    """Quote the error that a layer or a logger printed; it is not an exception."""
    error = o.incident.first_error
    if error is None or not error.told:
        return "", ()
    text = _state(f"{error.type}: {error.message}")
    return text, (_quote(text, error.line, error.rank),)


def of_traceback(o: Outlook) -> Headline:
    """State the printed exception with its place, although it may be a follow-up error."""
    error = o.incident.first_error
    if error is None or not error.frames or not error.message:
        return "", ()
    last = next((row for name, row in pairwise(error.below) if name.startswith("Last error")), "")
    message = last.strip() if last and _CODE_ONLY.match(error.message) else error.message
    quoted = _quote(format_exception(error.type, error.message), error.line, error.rank)
    return _state(f"{format_exception(error.type, message)}{format_place(own_frame(error.frames))}"), (quoted,)


def of_stated_limit(o: Outlook) -> Headline:
    """State whose default time limit ends the job, if the user says after which time it ends and nothing is printed."""
    found = find_limit(o.incident.prose.text) if not o.incident.errors else None
    return ("", ()) if found is None else (f"{found.says}.", ())


HEADLINES = (of_knock_on, of_unexplained_wait, of_failure, of_reasons, of_layer_error, of_traceback, of_stated_limit)
"""Sources of a headline, in order of precedence."""


def lone_error(incident: Incident) -> FinalError | None:
    """Return the last line of an exception that was printed without a traceback, in a text about several processes."""
    error = incident.first_error
    if error is None or error.told or "Traceback" in incident.snapshot.output:
        return None
    return error if error.message and incident.mentions_several else None


def _is_knock_on(knowledge: Knowledge, f: Finding) -> bool:
    return not (f.values or f.scores or f.told) and knowledge.evidence[f.evidence].role == "cascade"


def _is_vague(knowledge: Knowledge, reason: Reason) -> bool:
    """True for a follow-up error that names no cause, the bare class of an error, and a circumstance."""
    found = knowledge.evidence.get(reason.evidence)
    return found is None or found.catch_all or (found.role != "root" and not found.names)


def _telling(o: Outlook) -> list[Reason]:
    """Return the reasons of a named first cause; on one line, what always names one cause comes first."""
    reasons = o.causes[0].because if o.causes and o.causes[0].named else ()
    telling = [r for r in reasons if not _is_vague(o.knowledge, r)]
    lines = [r.line for r in telling]
    cures = {r.evidence: {c.cause for c in o.knowledge.evidence[r.evidence].cure} for r in telling}
    return sorted(telling, key=lambda r: (lines.index(r.line), len(cures[r.evidence]) > 1))


def _state(text: str) -> str:
    """Return a message as a headline; a list in it loses its middle before the message loses its end."""
    return plain(shorten_lists(text, _SENTENCE), _SENTENCE)


def format_exception(kind: str, message: str) -> str:
    """Format an exception by the bare name of its class: `KeyError: 'x'`."""
    return f"{kind.rpartition('.')[2]}{f': {message}' if message else ''}"


def format_place(frame: Frame | None) -> str:
    """Format where it was raised: ` at train.py:12 in main`; "" if that is unknown."""
    return f" at {_place(frame)}" if frame is not None else ""


def raised_in_output(incident: Incident) -> bool:
    """True if the output shows an exception that ended a rank."""
    verdict = incident.snapshot.verdict
    return verdict is not None and verdict.kind == "dead" and any(c.what == "raised" for c in verdict.claims)


def note_contradiction(incident: Incident, findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return a note if the description contradicts the output; the output wins."""
    hangs = any(f.source == "said" and (f.evidence, *f.values) in _SAYS_HANG for f in findings)
    if not (hangs and raised_in_output(incident)):
        return ()
    return ("You describe a hang; the output shows an exception. The ranks that wait for that one hang since then.",)


def _place(frame: Frame) -> str:
    """`train.py:12 in main`; `cell In[4], line 2` in a notebook."""
    if not frame.file.startswith("cell "):
        return f"{frame.file}:{frame.line} in {frame.function}"
    return f"{frame.file}, line {frame.line}{'' if frame.function == '<module>' else f', in {frame.function}'}"


def _quote(words: str, line: int, rank: int | None = None) -> Seen:
    where = f"rank {rank}, " if rank is not None else ""
    return Seen(text=f'"{plain(" ".join(words.split()), 200)}"', record=f"{where}line {line} of the output")


def claims_seen(verdict: Verdict | None) -> tuple[Seen, ...]:
    """Return the claims of a verdict, the strongest first."""
    if verdict is None or verdict.kind == "none":
        return ()
    claimed = [Seen(text=plain(c.text, _SENTENCE), record=plain(cite_record(c.record), 200)) for c in verdict.claims]
    said = {row.text for row in claimed}
    rest = [Seen(text=plain(line, _SENTENCE)) for line in verdict.evidence]
    return (*claimed, *(row for row in rest if row.text not in said))[:_MOST]


def quote_first_reason(reasons: Iterable[Reason], log: Log | None = None) -> tuple[str, tuple[Seen, ...]]:
    """Return the meaning of the first printed reason, or its line if that says which of several is meant; and its line.

    A meaning that covers several messages leaves open which of its alternatives holds. Without a log it is always the
    meaning: of a follow-up error that says more than the line.
    """
    for r in reasons:
        if r.weight > 0 and r.source == "printed" and "=" not in r.evidence and r.words:
            means = r.means if r.rank is None else re.sub(r"\AThis rank\b", f"Rank {r.rank}", r.means)
            told = _line_of(r, log) if log is not None and _ALTERNATIVES.search(r.means) else ""
            return _state(told) if told else plain(means, _SENTENCE), (_quote(r.words, r.line, r.rank),)
    return "", ()


def _line_of(reason: Reason, log: Log) -> str:
    """Return the printed line of a reason without its prefixes; "" for one that says less than the meaning.

    Such are frames, codes of exits, beginnings of sentences, and lines that name nothing of this job.
    """
    at = bisect_left(log.lines, reason.line, key=lambda line: line.number)
    near = [(line.number, line.body.strip()) for line in islice(log.lines, at, at + _NEAR)]
    same = (text for number, text in near if number == reason.line)
    body = next((text for text in same if reason.words.split("\n")[0].strip() in text), "")
    body = _BEFORE.sub("", body, count=1)
    goes_on = len(near) > 1 and near[-1][0] != reason.line and near[-1][1][:1].islower()
    if goes_on or _FRAME.search(body) or _SAYS_LESS.search(body) or not _NAMES.search(body):
        return ""
    if len(_WORD.findall(body)) < _WORDS:
        return ""
    return body if reason.rank is None else f"Rank {reason.rank}: {body}"
