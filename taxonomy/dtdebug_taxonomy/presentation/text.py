"""Renders a diagnosis as text: Markdown for a report, plain lines for a terminal without colour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import structs

from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis, RankedSymptom
from dtdebug_taxonomy.diagnosis.headline import Seen
from dtdebug_taxonomy.explanations.model import Explanation, Reason
from dtdebug_taxonomy.inference.next_step import Next
from dtdebug_taxonomy.inference.questions import FEW
from dtdebug_taxonomy.model.ranks import Verdict, spell
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.stacks.frames import short
from dtdebug_taxonomy.text.pattern_matcher import plain

_UNKNOWN = "Not enough is known to say what this is."
_SITUATION, _NOTES, _SITES, _SEEN = 8_000, 10, 8, 4
"""Maximum characters of the user's words, notes, and places and records of a verdict, in a report."""
NOT_KNOWN = "The cause is not known: nothing that was seen points to one."
GUESS = "possible, from your words alone"
"""Label of a guess."""
GUESSES = 2
"""Maximum number of guesses that are shown."""
DIFF_OF = {"yours": "in your file:", "example": "an example, not your file:", "": ""}
"""Headings above a diff."""
LATER = "Another failure in the same output; nothing connects it with the one above but their order:"
ECHO = (
    "Only an echo is seen: what is printed here comes from ranks that waited or from the launcher. Another rank failed "
    "first or never came. Look for the earliest error of every rank, and for the rank that printed nothing."
)


def first_line(d: Diagnosis) -> str:
    """Return what happened; if that was not observed, the class of the symptom."""
    return d.ordinary or d.happened or headline(d)


def subtitle(d: Diagnosis) -> str:
    """Return the class of the symptom, if it is known and not already the first line."""
    guessed = d.verdict == "echo" and all(r.source == "similar" for r in d.symptoms[0].why)
    return headline(d) if d.happened and d.verdict != "unknown" and not d.ordinary and not guessed else ""


def headline(d: Diagnosis) -> str:
    """Return the class of the symptom in one line."""
    first, second = d.symptoms[:2]
    if d.ordinary:
        return d.ordinary
    if d.verdict == "unknown":
        return _UNKNOWN
    if d.verdict == "apart":
        other = second.title[:1].lower() + second.title[1:]
        return f"{first.title} ({first.code}) or {other} ({second.code}): the findings do not separate them."
    likely = {"settled": "", "leaning": " (leaning)", "echo": " (an echo)"}[d.verdict]
    return f"{first.title} ({first.code}){likely}"


def where(r: Reason) -> str:
    """Return the place where a finding was seen."""
    place = {
        "printed": f"line {r.line}" if r.line else "the output",
        "said": "your description",
        "exception": "the exception",
        "measured": "measured",
        "answered": "your answer",
        "checked": f"{short(r.file)}:{r.line}" if r.file else f"line {r.line} of the cell",
        "similar": "the text",
    }[r.source]
    return f"rank {r.rank}, {place}" if r.rank is not None else place


def reason_line(r: Reason) -> str:
    """Return one finding: its meaning, its place and its words."""
    words = f' "{_one_line(r.words, 100)}"' if r.words else ""
    return f"{'' if r.weight > 0 else 'but: '}{r.means} [{where(r)}]{words}"


def _one_line(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def to_text(d: Diagnosis, advice: int = 2, *, full: bool = False) -> str:
    """Return plain lines: what happened, what supports it, symptom, why, the best advice, the next question.

    `full` adds what was weighed against it, how each cause leads to the failure, and what is known.
    """
    return "\n".join(_text(d, advice, full=full))


def _text(d: Diagnosis, advice: int, *, full: bool) -> Iterator[str]:
    yield f"dtdebug: {first_line(d)}"
    yield from (f"  seen: {seen_line(s)}" for s in d.seen[: None if full else _SEEN])
    yield from reading(d, advice, full=full)
    for other in d.later:
        yield f"  {LATER}"
        yield from (f"  {line.removeprefix('dtdebug: ')}" for line in _text(other, 1, full=full))


def reasons(d: Diagnosis, s: RankedSymptom) -> list[Reason]:
    """Return what supports or contradicts a symptom, without what the first line states, and answers to questions."""
    guessed = d.verdict == "echo" and d.happened
    rows = [r for r in s.why if r.means != d.happened and not (guessed and r.source == "similar")]
    return [r for r in rows if not r.values][:3]


def seen_line(s: Seen) -> str:
    """Return a claim with its record."""
    return f"{s.text} [{s.record}]" if s.record else s.text


def reading(d: Diagnosis, advice: int = 2, *, following: bool = True, full: bool = False) -> Iterator[str]:
    """Yield the meaning of the failure, below its first line and evidence; `following` adds the next step.

    `full` as in `to_text`.
    """
    if line := subtitle(d):
        yield f"  symptom: {line}"
    if d.verdict == "echo" and not d.happened:
        yield f"  {ECHO}"
    if d.ordinary:
        for a in d.advice:
            yield from _advice_text(a, (), full=full)
        return
    most = {"apart": 2, "unknown": 0 if d.happened else 3}.get(d.verdict, 1)
    shown = d.symptoms[:most]
    given: list[str] = []
    for s in shown:
        if len(shown) > 1:
            yield f"  {s.code} {s.title}: {s.band}"
        found = [reason_line(r) for r in reasons(d, s)]
        yield from (f"  why: {line}" for line in found)
        given += found
    yield from (f"  why: {line}" for line in d.ruled_out[: None if full else 2])
    if full:
        yield from (f"  or: {s.title} ({s.code}), {s.band}" for s in d.symptoms[most:] if s.band != "unlikely")
    if d.culprits and not d.happened:
        yield f"  first seen on rank {', '.join(map(str, d.culprits))}"
    yield from _causes_text(d, advice, given, following=following, full=full)
    if following and d.question is not None and not d.asks_nothing:
        values = [value for value, _ in d.question.values]  # the likeliest come first
        choices = " / ".join(values if len(values) <= FEW else [*values[: FEW - 1], "or another"])
        yield f"  next question: {d.question.ask} ({choices})"
    for note in d.notes:
        yield f"  note: {note}"
    if full:
        known = [k for k in d.known if k.source in ("answered", "measured")]
        yield from (f"  known: {k.key} = {', '.join(k.values)} ({k.source})" for k in known)


def _causes_text(d: Diagnosis, advice: int, given: Sequence[str], *, following: bool, full: bool) -> Iterator[str]:
    """Yield the causes and the next step; if no cause is known, guesses below it. Reasons given above are left out."""
    for a in d.advice if full else worth_showing(d, advice):
        yield from _advice_text(a, given, full=full)
    if not d.advice:
        yield f"  {NOT_KNOWN}"
    if following and d.next is not None and d.next.kind == "measure":
        yield from _next_text(d.next)
    for a in d.guesses[:GUESSES]:
        yield f"  {GUESS}: {a.title}"
        yield from _because_text(a, given)


def worth_showing(d: Diagnosis, most: int) -> list[Explanation]:
    """Return the first cause, and others that are not unlikely."""
    return [*d.advice[:1], *(a for a in d.advice[1:most] if a.band != "unlikely")][:most]


def _next_text(n: Next) -> Iterator[str]:
    yield f"  next: {n.text.rstrip('.')} (about {n.minutes:g} min)." if n.command else f"  next: {n.text}"
    if n.command:
        yield f"    {n.command}"
    if n.why:
        yield f"    {n.why}"


def _advice_text(a: Explanation, given: Sequence[str], *, full: bool) -> Iterator[str]:
    yield f"  cause, {a.band}: {a.title}"
    if full and a.why:
        yield f"    how: {a.why}"
    yield from _because_text(a, given)
    if a.diff:
        yield f"    {DIFF_OF[a.diff_of]}"
    for line in a.diff.splitlines():
        yield f"      {line}"
    if a.tried:
        yield f"    {_trial_line(a)}"


def _trial_line(a: Explanation) -> str:
    return f"{'Proven' if a.works else 'Not proven'}: {a.tried}"


def _because_text(a: Explanation, given: Sequence[str]) -> Iterator[str]:
    yield from (f"    because: {reason}" for reason in because(a) if reason not in given)
    where = f"edit {short(a.file)}:{a.line}: " if a.line and not a.diff else ""
    yield f"    fix: {where}{a.fix}"


def because(a: Explanation) -> list[str]:
    """Return what points to a cause; words that its title quotes are not repeated."""
    return [reason_line(r if r.words not in a.title else structs.replace(r, words="")) for r in a.because[:2]]


def to_markdown(d: Diagnosis, snapshot: Snapshot | None = None) -> str:
    """Return a report that can be pasted into an issue."""
    verdicts = (snapshot.verdict, *(each.verdict for each in snapshot.later)) if snapshot is not None else ()
    return "\n".join((*_cases_markdown(d, verdicts), *(_context(snapshot) if snapshot is not None else ()))) + "\n"


def _cases_markdown(d: Diagnosis, verdicts: Sequence[Verdict | None]) -> Iterator[str]:
    """Yield the first failure, then further ones of the same output."""
    for each, verdict in zip_longest((d, *d.later), verdicts):
        yield from (LATER, "") if each is not d else ()
        yield from _markdown(each, verdict)


def _markdown(d: Diagnosis, verdict: Verdict | None) -> Iterator[str]:
    yield from _head_markdown(d)
    if d.ordinary:
        yield from _causes_markdown(d)
        return
    if verdict is not None and verdict.kind != "none":
        yield from _verdict(verdict)
    if d.verdict == "echo" and not d.happened:
        yield from (ECHO, "")
    yield from ("| symptom | how likely |", "| --- | --- |")
    for s in [s for s in d.symptoms if s.band != "unlikely"] or d.symptoms[:3]:
        yield f"| {s.code} {_escape(s.title)} | {s.band} |"
    yield ""
    if found := reasons(d, d.symptoms[0]):
        yield from ("**Why**", "")
        yield from (f"- {_escape(reason_line(r))}" for r in found)
        yield ""
    if d.culprits and not d.happened:
        yield from (f"First seen on rank {', '.join(map(str, d.culprits))}.", "")
    yield from (f"- {_escape(line)}" for line in d.ruled_out)
    yield from _causes_markdown(d)
    yield from _next_markdown(d)
    if d.question is not None and not d.asks_nothing:
        yield from (f"**Next question**: {_escape(d.question.ask)}", "")
    answers = [k for k in d.known if k.source in ("answered", "measured")]
    if answers:
        yield from ("**Known**", "")
        yield from (f"- {k.key}: {', '.join(k.values)} ({k.source})" for k in answers)
        yield ""


def _causes_markdown(d: Diagnosis) -> Iterator[str]:
    for number, a in enumerate(d.advice, 1):
        yield f"{number}. **{_escape(a.title)}** ({a.band})  "
        yield f"   {_escape(a.why)} {_escape(a.fix)} Because: {_escape('; '.join(because(a)))}"
        if a.diff:
            fence = _fence(a.diff)
            lines = (f"   {line}" for line in a.diff.splitlines())
            yield from ("", f"   {DIFF_OF[a.diff_of]}", "", f"   {fence}diff", *lines, f"   {fence}")
            yield from ("", f"   {_escape(_trial_line(a))}") if a.tried else ()
        yield ""


def _head_markdown(d: Diagnosis) -> Iterator[str]:
    """Yield what happened and what supports it."""
    yield from (f"## {_escape(first_line(d))}", "")
    if line := subtitle(d):
        yield from (_escape(line), "")
    yield from (f"- {_escape(seen_line(s))}" for s in d.seen)
    yield from ("",) if d.seen else ()


def _next_markdown(d: Diagnosis) -> Iterator[str]:
    if not d.advice:
        yield from (NOT_KNOWN, "")
    if d.next is not None and d.next.kind == "measure":
        yield from (f"**Next**: {_escape(d.next.text)} {_escape(d.next.why)}", "")
        if d.next.command:
            fence = _fence(d.next.command)
            yield from (f"{fence}sh", d.next.command, fence, "")
    for a in d.guesses[:GUESSES]:
        yield f"- {GUESS}: **{_escape(a.title)}** {_escape(a.fix)} Because: {_escape('; '.join(because(a)))}"
    yield from ("",) if d.guesses else ()


def _verdict(v: Verdict) -> Iterator[str]:
    """Yield where each rank was, and other interpretations."""
    for site in v.sites[:_SITES]:
        part = "culprit" if site.rank in v.culprits else "waits"
        yield f"- rank {site.rank} ({part}): {_escape(plain(f'{site.file}:{site.line} in {site.function}', 300))}"
    for other in v.alternatives[:3]:
        told = f"; what would tell: {other.refute}" if other.refute else ""
        yield f"- or {_escape(plain(f'{other.kind}, {spell(other.culprits, 8)}: {other.because}{told}', 400))}"
    yield ""


def _context(s: Snapshot) -> Iterator[str]:
    if s.versions:
        yield from ("**Versions**: " + ", ".join(_escape(plain(f"{k} {v}")) for k, v in s.versions.items()), "")
    if s.situation:
        told = [plain(line, _SITUATION) for line in s.situation[:_SITUATION].splitlines()]
        fence = _fence(s.situation)  # as code: nothing in it is Markdown, mentions a person or links
        yield from ("**What happened**", "", f"{fence}text", *told, fence, "")
    if s.environment:
        yield from ("<details><summary>Environment</summary>", "", "```")
        yield from (plain(f"{k}={v}", 600).replace("`", "'") for k, v in s.environment.items())
        yield from ("```", "", "</details>", "")
    yield from (f"- note: {_escape(plain(n))}" for n in s.notes[:_NOTES])


def _fence(text: str) -> str:
    """Return a fence of backticks that nothing in the text can close."""
    return "`" * max(3, 1 + max((len(f) for f in re.findall(r"`+", text)), default=0))


def _escape(text: str) -> str:
    """Escape text so that Markdown and HTML show it unchanged."""
    return re.sub(r"([\\`*_\[\]|~$])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
