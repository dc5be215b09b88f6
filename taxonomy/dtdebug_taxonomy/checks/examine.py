"""Runs the checks over one source: which apply, what they find, what the user has switched off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

from dtdebug_taxonomy.checks import Check, Fix, Hit, Severity, load
from dtdebug_taxonomy.checks.origins import with_origin
from dtdebug_taxonomy.checks.settings import Settings
from dtdebug_taxonomy.source.configuration import told
from dtdebug_taxonomy.source.python import Code
from dtdebug_taxonomy.source.source import Kind, Source
from dtdebug_taxonomy.source.text import Span

_IGNORE = re.compile(r"(?:#|//)\s*dtdebug:\s*ignore(?P<file>-file)?(?:\[(?P<ids>[^\]\n]*)\])?")
"""`# dtdebug: ignore[DT101] reason`; without ids all of them; `ignore-file` for the whole file."""


class CheckedHit(NamedTuple):
    """A hit of one check, as it is to be shown."""

    check: Check
    span: Span
    message: str
    severity: Severity
    fix: Fix | None

    @property
    def safe(self) -> bool:
        """Whether its fix may be applied without looking."""
        if self.fix is None:
            return False
        return self.check.safe if self.fix.safe is None else self.fix.safe


def applicable(source: Source, settings: Settings) -> list[Check]:
    """The checks that are on for a source, by kind, words and settings."""
    enabled = settings.enabled(source.path)
    held = _held(source)
    return [
        c
        for c in load().values()
        if source.kind in c.files
        and c.id in enabled
        and not (c.words and held.isdisjoint(c.words))
        and not (c.also and held.isdisjoint(c.also))
    ]


def _held(source: Source) -> set[str]:
    """Of the words that checks want, those in a text, each looked for once: where all differ, or in the whole text."""
    pieces = "\n".join(set(source.text.split()))
    held: set[str] = set()
    for word, part, is_piece in _words(source.kind):
        if (not part or part in held) and word in (pieces if is_piece else source.text):
            held.add(word)
    return held


@cache
def _words(kind: Kind) -> tuple[tuple[str, str, bool], ...]:
    """All words that checks want in a text of a kind: with a word that is part of it, and whether it has no blank."""
    words = {word for c in load().values() if kind in c.files for word in (*c.words, *c.also)}
    rows: list[tuple[str, str, bool]] = []
    for word in sorted(words, key=lambda w: (len(w), w)):
        part = max((p for p, *_ in rows if p in word), key=len, default="")
        rows.append((word, part, word.split() == [word]))
    return tuple(rows)


def examine(
    source: Source,
    settings: Settings | None = None,
    *,
    failed: Callable[[Check, Exception], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[CheckedHit]:
    """All findings in a source, by place.

    A check that fails itself is reported to `failed` and counts as silent; without `failed`
    its exception goes through. `cancelled` is asked between checks.
    """
    settings = settings or Settings()
    found: list[CheckedHit] = []
    for check in applicable(source, settings):
        if cancelled():
            break
        if isinstance(source, Code) and not _concerns(check, source):
            continue
        asked = settings.severity.get(check.id)
        try:
            found += [
                CheckedHit(check, h.span, h.message, asked or h.severity or check.severity, h.fix)
                for h in _hits(check, source)
            ]
        except Exception as error:
            if failed is None:
                raise
            failed(check, error)
    if found and "dtdebug" in source.text:
        ignored = _ignored(source)
        found = [f for f in found if not ignored(f)]
    return sorted(set(found), key=lambda f: (f.span, f.check.id))


def _hits(check: Check, source: Source) -> Iterator[Hit]:
    """What a check sees, with the place of each value of a configuration that it rests on."""
    if not isinstance(source, Code):
        yield from check.function(source)
        return
    known = len(told(source))
    for hit in check.function(source):
        yield with_origin(source, hit, known)
        known = len(told(source))


def _concerns(check: Check, code: Code) -> bool:
    """Heuristics are for programs, the modules of a project, and what trains in a package that others import."""
    if check.programs_only:
        return code.role == "program"
    return check.severity != "hint" or code.role == "program" or not (code.role == "test" or code.in_package)


def _ignored(source: Source) -> Callable[[CheckedHit], bool]:
    """Tells what the user's comments switch off."""
    by_line: dict[int, frozenset[str]] = {}
    everywhere: set[str] = set()
    for found in _IGNORE.finditer(source.text):
        ids = frozenset(_ids(found["ids"]))
        if found["file"]:
            everywhere |= ids
        else:
            by_line[source.text.place(found.start()).line] = ids

    def ignored(hit: CheckedHit) -> bool:
        first, last = (source.text.place(o).line for o in hit.span)
        if isinstance(source, Code):
            last = max(last, _last_line(source, first))
        rows = [by_line.get(line, frozenset()) for line in {first, last}]
        return any(_covers(i, hit.check) for i in (*rows, everywhere))

    return ignored


def _last_line(code: Code, first: int) -> int:
    """The line on which the simple statement ends that begins on a line: a comment may stand at its end."""
    ends = [s.end_lineno or 0 for s in code.statements_at(first) if not hasattr(s, "body")]
    return max(ends, default=first)


def _ids(text: str | None) -> Iterator[str]:
    yield from (i for i in re.split(r"[\s,]+", text) if i) if text is not None else ("*",)


def _covers(ids: AbstractSet[str], check: Check) -> bool:
    return any(i == "*" or check.id.startswith(i) or i == check.name for i in ids)
