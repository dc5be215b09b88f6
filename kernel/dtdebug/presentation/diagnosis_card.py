"""Renders a diagnosis as a MIME bundle: versioned JSON, static HTML without script, plain text.

All three begin with the short answer; what else is known follows below "Why?".
"""

from __future__ import annotations

from html import escape
from itertools import product
from typing import Any

import msgspec

from dtdebug.presentation.cell_answer import answer_of, to_cell_text
from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.diagnosis.diagnose import Asked, Diagnosis, RankedSymptom
from dtdebug_taxonomy.explanations.model import Explanation
from dtdebug_taxonomy.model.answer import Answer, Spot
from dtdebug_taxonomy.model.rank_ranges import ranges, shorten_text
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.answer_text import certainty_of, why_label
from dtdebug_taxonomy.presentation.text import (
    ECHO,
    GUESS,
    GUESSES,
    LATER,
    NOT_KNOWN,
    because,
    first_line,
    reason_line,
    reasons,
    seen_line,
    subtitle,
)
from dtdebug_taxonomy.stacks.frames import spell_place

MIME = "application/vnd.dtdebug.diagnosis+json"
LIMIT = 4_000
"""Maximum size in bytes of JSON saved in a notebook."""
_SEEN, _CLAIM = 4, 200
"""Maximum number of claims shown, and of characters of each."""
_LATER = 2
"""Maximum number of further failures of the same output that a notebook keeps."""
_SIZES = (
    (5, 3, 3, 1_200, 2), (3, 3, 2, 600, 2), (2, 2, 1, 1_200, 1), (2, 3, 1, 0, 2), (2, 1, 1, 0, 0), (1, 1, 1, 0, 0),
    (1, 0, 1, 0, 0), (2, 0, 0, 0, 0),
)  # fmt: skip
"""(symptoms, reasons, pieces of advice, characters of a diff, notes) to try until the result is small enough: the
first fix as a diff is more valuable than a third piece of advice."""

_STYLE = (
    "border-left:4px solid #c77700;padding:4px 12px;margin:4px 0;max-width:60em;line-height:1.5;overflow-wrap:anywhere"
)
_LIST = "margin:2px 0 6px;padding-left:24px"
_CODE = "margin:2px 0;padding:0 0 0 12px;overflow-x:auto;line-height:1.4"
_SPOTS = 3
"""Maximum number of places shown."""
_NO_DIFF: dict[str, Any] = {"diff": "", "diff_of": "", "in_python": False}
_FOOTER = "<code>%dtdebug</code> goes on from here; <code>%dtdebug off</code> keeps quiet."
_ADDED, _REMOVED = "background:rgba(46,160,67,.18)", "background:rgba(248,81,73,.18)"


class Card(Diagnosis, frozen=True, kw_only=True):
    """A diagnosis with its short answer, as front ends get it."""

    answer: Answer | None = None

    def __repr__(self) -> str:
        """Return the short answer."""
        return to_cell_text(self.answer) if self.answer is not None else super().__repr__()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return _bundle(self)


def card(d: Diagnosis, snapshot: Snapshot | None = None) -> Card:
    """Return a diagnosis with its short answer."""
    fields = {name: getattr(d, name) for name in Diagnosis.__struct_fields__}
    return Card(**fields, answer=answer_of(d, snapshot))


def bundle(d: Diagnosis, snapshot: Snapshot | None = None) -> dict[str, Any]:
    """Return the MIME bundle to publish under a failed cell."""
    return _bundle(card(d, snapshot))


def _bundle(c: Card) -> dict[str, Any]:
    text = to_cell_text(c.answer) if c.answer is not None else first_line(c)
    return {MIME: small(c), "text/html": to_html(c), "text/plain": text}


def small(d: Diagnosis) -> dict[str, Any]:
    """Return the JSON that a notebook saves: the head of each ranking, below `LIMIT` bytes.

    Diffs of other programs are left out: no reader should take one for a change of the notebook.
    """
    for (symptoms, whys, advice, diff, notes), causes in product(_SIZES, (1, 0) if d.later else (0,)):
        short: Diagnosis = msgspec.structs.replace(
            d,
            symptoms=tuple(
                msgspec.structs.replace(s, why=tuple(_shorter(r) for r in s.why[:whys]) if i < 2 else ())
                for i, s in enumerate(d.symptoms[:symptoms])
            ),
            advice=tuple(
                msgspec.structs.replace(
                    a,
                    **({} if a.diff_of == "yours" and len(a.diff) <= diff else _NO_DIFF),
                    because=tuple(_shorter(r) for r in a.because[:1]),
                )
                for a in d.advice[:advice]
            ),
            guesses=tuple(
                msgspec.structs.replace(a, **_NO_DIFF, because=tuple(_shorter(r) for r in a.because[:1]))
                for a in d.guesses[: min(GUESSES, advice)]
            ),
            fix_patterns=d.fix_patterns[:3],
            known=(),
            notes=tuple(n[:120] for n in d.notes[:notes]),
            culprits=d.culprits[:16],
            happened=d.happened[:300],
            seen=tuple(
                msgspec.structs.replace(
                    s, text=s.text if len(s.text) <= _CLAIM else shorten_text(s.text, _CLAIM), record=s.record[:80]
                )
                for s in d.seen[: min(_SEEN, whys + 1)]
            ),
            question=msgspec.structs.replace(d.question, why="", how="", command="")
            if d.question and advice and not d.asks_nothing
            else None,
            later=tuple(_first_alone(each, causes) for each in d.later[:_LATER]),
        )
        data = msgspec.json.encode(short)
        if len(data) < LIMIT:
            break
    decoded: dict[str, Any] = msgspec.json.decode(data)
    return decoded


def without_examples(d: Diagnosis) -> Diagnosis:
    """Return the diagnosis without diffs of other programs."""
    causes = tuple(a if a.diff_of == "yours" else msgspec.structs.replace(a, **_NO_DIFF) for a in d.advice)
    return msgspec.structs.replace(d, advice=causes, later=tuple(without_examples(each) for each in d.later))


def _first_alone(d: Diagnosis, causes: int) -> Diagnosis:
    """Return a further failure reduced to its symptom, and its first causes if there is room."""
    return msgspec.structs.replace(
        d,
        symptoms=tuple(msgspec.structs.replace(s, why=()) for s in d.symptoms[: 2 if d.verdict == "apart" else 1]),
        advice=tuple(msgspec.structs.replace(a, why="", diff="", diff_of="", because=()) for a in d.advice[:causes]),
        guesses=(),
        next=None,
        ruled_out=(),
        fix_patterns=(),
        question=None,
        known=(),
        culprits=d.culprits[:16],
        notes=(),
        happened=d.happened[:300],
        seen=(),
    )


def _shorter(reason: Any) -> Any:
    return msgspec.structs.replace(reason, words=reason.words[:80])


def to_html(d: Diagnosis) -> str:
    """Format as static HTML: no script, no style sheet, nothing from outside; every text is escaped."""
    answer = d.answer if isinstance(d, Card) else None
    first = _short(answer) if answer is not None else f"<b>dtdebug</b>: <b>{escape(clean(first_line(d)))}</b>"
    more = "<details><summary>Why?</summary>", "</details>"
    begin, end = more if answer is not None else ("", "")
    return f'<div class="dtdebug" style="{_STYLE}">{first}{begin}{"".join(_rest(d))}{end}</div>'


def short_html(c: Card) -> str:
    """Format the short answer alone."""
    return _short(c.answer) if c.answer is not None else f"<b>{_safe(first_line(c))}</b>"


def answer_html(answer: Answer) -> str:
    """Format a short answer that has no diagnosis."""
    return f'<div class="dtdebug" style="{_STYLE}">{_short(answer)}{_note(answer)}</div>'


def _note(answer: Answer) -> str:
    return "".join(f"<div><small>note: {_safe(note)}</small></div>" for note in answer.notes)


def _short(a: Answer) -> str:
    """Format what happened, the lines of code, why, the change, and the next step."""
    parts = [f"<b>dtdebug</b>: <b>{_safe(a.headline)}</b>"]
    parts += [f"<div>{_safe(a.event)}</div>"] if a.event else []
    parts += [_spot(s) for s in a.spots[:_SPOTS]]
    why = f"{a.why} [{a.record}]" if a.why and a.record else a.why or a.record
    parts += [f"<div><b>{why_label(a)}</b>: {_safe(why)}</div>"] if why else []
    parts += [f"<div><b>Maybe</b>: {_safe(a.guess)}</div>"] if a.guess else []
    if a.fix is not None:
        parts.append(f"<div><b>Fix</b>: {_safe(a.fix.text)}</div>{_diff(a.fix.diff)}")
    if a.next is not None:
        command = f"<pre style='{_CODE}'>{_safe(a.next.command)}</pre>" if a.next.command else ""
        parts.append(f"<div><b>Next</b>: {_safe(a.next.text)}{command}</div>")
    parts += [f"<div><small>{_safe(certainty_of(a))}</small></div>"] if certainty_of(a) else []
    return "".join(parts)


def _spot(s: Spot) -> str:
    """Format a place: its ranks, the line of code, what is marked in it, and the values."""
    who = f"rank{'s' * (len(s.ranks) > 1)} {ranges(s.ranks, 4)}" if s.ranks else ""
    head = " · ".join(filter(None, (who, spell_place(s.file, s.line), s.state)))
    values = ", ".join(f"{name} = {text}" if text else name for name, text in s.values)
    begin, end = s.mark
    below = " " * begin + "^" * (end - begin) + " " * bool(values) if end > begin else ""
    rows = "\n".join(_safe(row) for row in (s.code, f"{below}{values}") if row)
    return f"<div><small>{_safe(head)}</small></div>" + (f'<pre style="{_CODE}">{rows}</pre>' if rows else "")


def _safe(text: str) -> str:
    return escape(clean(text))


def _rest(d: Diagnosis) -> list[str]:
    """Format all that stands below the short answer."""
    parts = [f"<div>{escape(subtitle(d))}</div>" if subtitle(d) else ""]
    if d.seen:
        rows = "".join(f"<li>{escape(clean(seen_line(s)))}</li>" for s in d.seen[:_SEEN])
        parts.append(f'<div>Seen:</div><ul style="{_LIST}">{rows}</ul>')
    if d.verdict == "echo" and not d.happened:
        parts.append(f"<div>{escape(ECHO)}</div>")
    shown = d.symptoms[: 2 if d.verdict == "apart" else 1] if d.verdict != "unknown" else ()
    parts += [_why(d, s, f"Why {s.code}" if len(shown) > 1 else "Why") for s in shown]
    parts.append(_others(d, shown))
    if d.culprits and not d.happened:
        parts.append(f"<div>First seen on rank {', '.join(map(str, d.culprits))}.</div>")
    parts += [_advice(a, is_open=i == 0) for i, a in enumerate(d.advice[:3])]
    if not d.advice and not d.ordinary:
        parts.append(f"<div>{escape(NOT_KNOWN)}</div>")
    if d.next is not None and d.next.kind == "measure":
        command = f"<pre>{escape(d.next.command)}</pre>" if d.next.command else ""
        parts.append(f"<div><b>Next</b>: {escape(d.next.text)}{command}<small>{escape(d.next.why)}</small></div>")
    if d.guesses:
        parts += [f"<div>{escape(GUESS.capitalize())}</div>", *(_advice(a, is_open=False) for a in d.guesses[:GUESSES])]
    if d.question and not d.asks_nothing:
        parts.append(_question(d.question))
    parts += [f"<div><small>note: {escape(n)}</small></div>" for n in d.notes]
    parts += [_later(each) for each in d.later]
    parts.append(f"<div><small>{_FOOTER}</small></div>")
    return parts


def _later(d: Diagnosis) -> str:
    """Format a further failure: what happened, and its first cause."""
    head = f"<div>{escape(LATER)}</div><div><b>{escape(clean(first_line(d)))}</b></div>"
    return head + "".join(_advice(a, is_open=False) for a in d.advice[:1])


def _why(d: Diagnosis, s: RankedSymptom, label: str) -> str:
    rows = "".join(f"<li>{escape(reason_line(r))}</li>" for r in reasons(d, s))
    return f'<div>{escape(label)} ({escape(s.band)}):</div><ul style="{_LIST}">{rows}</ul>' if rows else ""


def _others(d: Diagnosis, shown: tuple[RankedSymptom, ...]) -> str:
    """Format the other possible symptoms; if too little is known, the nearest ones."""
    if d.ordinary:
        return ""
    rest = [s for s in d.symptoms if s not in shown and (not shown or s.band != "unlikely")][:3]
    if not rest:
        return ""
    named = "; ".join(f"{s.title} ({s.code})" for s in rest)
    return f"<div><small>{'Also possible' if shown else 'Nearest so far'}: {escape(named)}.</small></div>"


def _question(q: Asked) -> str:
    choices = "".join(f"<li>{escape(means)}: <code>{escape(value)}</code></li>" for value, means in q.values)
    line = f"<div><small><code>%dtdebug answer {escape(q.key)} VALUE</code> answers it.</small></div>"
    ask = f"<summary><b>Next question</b>: {escape(q.ask)}</summary>"
    return f'<details>{ask}<ul style="{_LIST}">{choices}</ul>{line}</details>'


def _advice(a: Explanation, *, is_open: bool) -> str:
    reasons = "".join(f"<div><small>because: {escape(r)}</small></div>" for r in because(a))
    costs = f"({escape(a.band)})"
    return (
        f"<details{' open' if is_open else ''}><summary><b>{escape(a.title)}</b> {costs}</summary>"
        f"<div>{escape(a.why)}</div>{reasons}<div><b>Fix</b>: {escape(a.fix)}</div>"
        f"{_diff(a.diff) if a.diff_of == 'yours' else ''}</details>"
    )


def _diff(diff: str) -> str:
    """Format a change of the user's own lines, below the names of several cells."""
    rows: list[str] = []
    several = diff.count("\n+++ ") > 1
    for line in (row for row in diff.splitlines() if not row.startswith(("--- ", "@@ "))):
        if line.startswith("+++ "):
            rows += [f"<b>{_safe(line[4:])}</b>"] * several
            continue
        colour = _ADDED if line.startswith("+") else _REMOVED if line.startswith("-") else ""
        rows.append(f'<span style="{colour}">{_safe(line)}</span>' if colour else _safe(line))
    return '<pre style="margin:4px 0;padding:4px 8px;overflow-x:auto">' + "\n".join(rows) + "</pre>" if rows else ""
