"""Lays the short answer out in lines: at most `MOST` at 80 columns, the headline first, each fact once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from dtdebug_taxonomy.model.answer import Answer, Fix, Spot, Step
from dtdebug_taxonomy.model.rank_ranges import ranges, shorten_text
from dtdebug_taxonomy.stacks.frames import spell_place
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.whole_parts import first_parts, message_parts

MOST, WIDTH, NARROWEST = 12, 80, 40
"""Maximum number of lines at 80 columns; columns by default; fewest columns that lines are wrapped to."""
_LABEL = 6
"""Columns of `Why` and its like with their blanks."""
_DIFF_LINES, _FIX_LINES = 6, 6
_DOTS, _CONTEXT = len("..."), 12
"""Columns of the dots for the beginning of a changed line, and of what is kept of it before the change."""
_ERROR = re.compile(r"(?:^| )(?:\w{1,40}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit)\b(?:: |$)")
"""An error that the headline quotes: the user has it, so that a cause below leaves it two lines."""
MORE = "more: dtdebug why"
CERTAINTY = {
    "certain": "Certain", "likely": "Likely", "possible": "Possible, not certain",
    "own": "Raised by the program itself", "place": "Rank and line are certain, the cause is not known",
    "stated": "The message says it", "unknown": "Cause not known", "well": "",
}  # fmt: skip
"""Certainty of the cause, in words."""
GUESSED = "A guess from words alone"
CAUSE_ONLY = "The cause is certain, the fix is not proven"

Kind = Literal[
    "headline", "event", "place", "code", "mark", "why", "fix", "removed", "added", "next", "command", "foot"
]


_ROWS: dict[str, Kind] = {"-": "removed", "+": "added"}
_Parts = Callable[[str, int], str]
"""Returns the parts of a text that fit in a number of characters."""


class Line(NamedTuple):
    """One line of an answer, and its role, which a terminal may colour."""

    kind: Kind
    text: str


class _Level(NamedTuple):
    """Amount of each part that is shown; the levels are tried until the answer is short enough."""

    headline: int
    event: int
    spots: int
    framed: int
    """Number of places below which their source line is shown, with its marks."""
    why: int
    fix: int
    diff: int
    next: int
    note: int
    """Maximum number of lines of the note; 0 leaves it out."""


_LEVELS = (
    _Level(3, 2, 3, 3, 3, 3, _DIFF_LINES, 3, 2),
    _Level(2, 1, 2, 2, 2, 2, _DIFF_LINES, 2, 2),
    _Level(2, 1, 2, 1, 2, 2, _DIFF_LINES, 2, 2),
    _Level(2, 1, 2, 0, 2, 2, _DIFF_LINES, 2, 2),
    _Level(2, 1, 2, 0, 1, 1, _DIFF_LINES, 1, 1),
    _Level(2, 0, 1, 0, 1, 1, 4, 1, 1),
    _Level(1, 0, 1, 0, 1, 1, 2, 1, 0),
)
"""Numbers of lines or places of each part, the roomiest first."""


def lay_out(
    answer: Answer, width: int = WIDTH, *, prefix: str = "", more: str = MORE, collected: str = ""
) -> list[Line]:
    """Return the lines of an answer, wrapped at `width` columns; at most `MOST` if that is 80 or more.

    `collected`: the folder with all that is known of a run.
    """
    width = max(NARROWEST, width)
    lines: list[Line] = []
    for level in _LEVELS:
        lines = list(_lines(answer, level, width, prefix, more))
        if collected:
            lines.append(Line("foot", f"All that was collected: {plain(collected, 400)}"))
        if len(lines) <= MOST:
            break
    return lines


def to_short_text(answer: Answer, width: int = WIDTH, *, prefix: str = "", more: str = MORE) -> str:
    """Return the short answer as plain lines."""
    return "\n".join(line.text for line in lay_out(answer, width, prefix=prefix, more=more))


def _lines(a: Answer, level: _Level, width: int, prefix: str, more: str) -> Iterator[Line]:
    brief = bool(a.why or a.guess) and _ERROR.search(a.headline) is not None
    most = min(2, level.headline) if brief else level.headline
    yield from _wrap("headline", f"{prefix}{a.headline}", width, most, parts=message_parts)
    if a.event and level.event:
        yield from _wrap("event", a.event, width, level.event, "  ", parts=message_parts)
    for number, spot in enumerate(a.spots[: level.spots]):
        yield from _spot_lines(spot, width, framed=number < level.framed)
    hidden = sum(spell_place(spot.file, spot.line) not in a.headline for spot in a.spots[level.spots :])
    if hidden > 0 and level.framed:
        yield Line("place", f"  ... and {hidden} more place{'s' * (hidden > 1)}")
    if a.why or a.record:
        yield from _label_rows("why", why_label(a), _with_record(a.why, a.record), width, level.why)
    if a.guess:
        yield from _label_rows("why", "Maybe", a.guess, width, level.why)
    if a.fix is not None:
        yield from _fix_lines(a.fix, width, level)
    if a.next is not None:
        yield from _next_lines(a.next, width, level)
    for note in a.notes[: min(1, level.note)]:
        yield from _label_rows("why", "Note", note, width, level.note)
    yield Line("foot", _foot(a, more))


def why_label(a: Answer) -> str:
    """Return the label of the cause or of the reason for it; what is only possible is no reason."""
    return "Maybe" if a.sure == "possible" else "Why"


def _foot(a: Answer, more: str) -> str:
    return " · ".join(filter(None, (certainty_of(a), more)))


def certainty_of(a: Answer) -> str:
    """Return how sure the cause is, in words; over a fix that nothing proves it speaks of the cause alone."""
    if a.fix is not None and a.fix.tried:
        return f"{'Proven' if a.fix.proven else 'Not proven'}: {a.fix.tried}"
    if a.sure == "certain" and a.fix is not None and not a.fix.proven:
        return CAUSE_ONLY
    return GUESSED if a.guess and a.sure == "unknown" else CERTAINTY[a.sure]


def _with_record(why: str, record: str) -> str:
    return f"{why} [{record}]" if why and record else why or record


def _spot_lines(s: Spot, width: int, *, framed: bool) -> Iterator[Line]:
    """Yield `rank 3  train.py:16  state`, and below it the source line with its marks."""
    who = f"rank{'s' * (len(s.ranks) > 1)} {ranges(s.ranks, 4)}" if s.ranks else ""
    place = spell_place(s.file, s.line)
    values = ", ".join(f"{name} = {text}" if text else name for name, text in s.values)
    code = plain(s.code, 200)
    if not framed:
        row = "  ".join(filter(None, (who, place, s.state or code)))
        yield Line("place", _cut(f"  {row}", width))
        return
    yield Line("place", _cut("  " + "  ".join(filter(None, (who, place, s.state))), width))
    if not code:
        if values:
            yield Line("mark", _cut(f"      {values}", width))
        return
    begin, end = s.mark
    shown, shift = _window(code, begin, end, width - 6)
    yield Line("code", f"      {shown}")
    marks = " " * (begin - shift) + "^" * (min(end - shift, len(shown)) - (begin - shift))
    marked = f"{marks} {values}".rstrip() if marks.strip() else values
    if len(marked) > width - 6 and values:  # the values say which part is meant
        marked = values
    if marked:
        yield Line("mark", _cut(f"      {marked}", width))


def _window(code: str, begin: int, end: int, width: int) -> tuple[str, int]:
    """Return the part of a source line that fits, with what is marked, and how far it was shifted."""
    if len(code) <= width:
        return code, 0
    shift = 0 if begin < width // 2 or end <= width else min(begin, len(code) - width)
    return code[shift : shift + width], shift


def _fix_lines(f: Fix, width: int, level: _Level) -> Iterator[Line]:
    place = spell_place(f.file, f.line) if f.file and f.line else ""
    changed = _changed_lines(f.diff)
    if changed and len(changed) <= level.diff:
        yield from _label_rows("fix", "Fix", _with_place(f.text, place), width, 1)
        for line in changed:
            shown = _cut(_from_change(line, changed, width - _LABEL), width - _LABEL)
            yield Line(_ROWS.get(line[0], "place"), f"{' ' * _LABEL}{shown}")
        return
    text = f"`dtdebug fix` has a diff of {len(changed)} lines. {f.text}" if changed else f.text
    yield from _whole_fix(_with_place(text, place), width, level.fix)


def _with_place(text: str, place: str) -> str:
    return f"{place}: {text}" if place and place not in text else text


def _changed_lines(diff: str) -> list[str]:
    """Return the removed and added lines of a diff, without their common indentation; of several cells, their names."""
    rows = [plain(r, 200) for r in diff.splitlines() if r[:1] in _ROWS and not r.startswith("---") and r[1:].strip()]
    heads = [r for r in rows if r.startswith("+++")]
    least = min((len(r) - 1 - len(r[1:].lstrip()) for r in rows if r not in heads), default=0)
    named = [f"# {r[4:].removeprefix('b/')}" if r in heads else f"{r[0]} {r[1 + least :]}" for r in rows]
    return named if len(heads) > 1 else [row for row in named if row[0] in _ROWS]


def _from_change(line: str, changed: Sequence[str], width: int) -> str:
    """Return a changed line without so much of its beginning that what differs from its other half can be seen."""
    others = (zip(line[2:], other[2:], strict=False) for other in changed if other[0] != line[0])
    same = max((sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)) for pairs in others), default=0)
    lost = min(len(line) - width + _DOTS, same - _CONTEXT)
    return f"{line[:2]}...{line[2 + lost :]}" if len(line) > width and lost > _DOTS else line


def _next_lines(n: Step, width: int, level: _Level) -> Iterator[Line]:
    yield from _label_rows("next", "Next", n.text, width, level.next)
    if n.command:
        yield Line("command", f"{' ' * _LABEL}{plain(n.command, 400)}")
    if n.outcome and level.next > 1:
        yield from _wrap("next", n.outcome, width, level.next - 1, " " * _LABEL)


def _label_rows(kind: Kind, label: str, text: str, width: int, most: int) -> Iterator[Line]:
    rows = list(_wrap(kind, text, width, most, " " * _LABEL))
    for number, row in enumerate(rows):
        yield Line(kind, f"{label:<{_LABEL}}{row.text[_LABEL:]}") if number == 0 else row


def _whole_fix(text: str, width: int, most: int) -> Iterator[Line]:
    """Yield a fix in at most `most` lines, or in more if its first sentence needs them: half of it is none."""
    text = " ".join(text.split())
    for lines in range(most, _FIX_LINES):
        part = first_parts(text, lines * (width - _LABEL))
        if len(_rows(part, width - _LABEL)) <= lines:
            return _label_rows("fix", "Fix", part, width, lines)
    return _label_rows("fix", "Fix", text, width, _FIX_LINES)


def _wrap(
    kind: Kind, text: str, width: int, most: int, indent: str = "", *, parts: _Parts = first_parts
) -> Iterator[Line]:
    """Yield a text in at most `most` lines: of whole parts if there are such, else cut at a word, with dots."""
    text, room = " ".join(text.split()), width - len(indent)
    rows = _rows(text, room)
    for lost in range(0, room // 2, 4):  # what a line loses at its last word is not known before
        if len(rows) <= most:
            break
        rows = _rows(parts(text, most * room - lost), room)
    if len(rows) > most:
        rows = [*rows[: most - 1], shorten_text(" ".join(rows[most - 1 :]), room)]
    return (Line(kind, f"{indent}{row}") for row in rows)


def _rows(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
