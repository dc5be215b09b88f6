"""Runs the checks on one source: selects those that apply and drops what the user suppressed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache
from typing import NamedTuple

from dtdebug_taxonomy.checks import Check, Fix, Hit, Severity, load
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.checks.shared.origins import with_origin
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_values import resolved_expressions
from dtdebug_taxonomy.source.source import Kind, Source
from dtdebug_taxonomy.source.text import Span

_IGNORE = re.compile(r"(?:#|//)\s*dtdebug:\s*ignore(?P<file>-file)?(?:\[(?P<ids>[^\]\n]*)\])?")
"""`# dtdebug: ignore[DT101] reason`; all checks without ids; `ignore-file` covers the whole file."""


class CheckedHit(NamedTuple):
    """Hit of one check, with its final severity."""

    check: Check
    span: Span
    message: str
    severity: Severity
    fix: Fix | None

    @property
    def safe(self) -> bool:
        """True if its fix may be applied without review."""
        if self.fix is None:
            return False
        return self.check.safe if self.fix.safe is None else self.fix.safe


def applicable(source: Source, settings: Settings) -> list[Check]:
    """Return the checks that are enabled for a source, by kind, words and settings."""
    enabled = settings.enabled_ids(source.path)
    held = _contained_words(source)
    return [
        c
        for c in load().values()
        if source.kind in c.files
        and c.id in enabled
        and not (c.words and held.isdisjoint(c.words))
        and not (c.also and held.isdisjoint(c.also))
    ]


def _contained_words(source: Source) -> set[str]:
    """Return the words required by checks that occur in a text.

    Words without a blank are searched in the text's distinct pieces, all others in the whole text.
    """
    pieces = "\n".join(set(source.text.split()))
    held: set[str] = set()
    for word, part, is_piece in _words(source.kind):
        if (not part or part in held) and word in (pieces if is_piece else source.text):
            held.add(word)
    return held


@cache
def _words(kind: Kind) -> tuple[tuple[str, str, bool], ...]:
    """Return all words that checks require in a kind of text: (word, shorter word in it, whether it has no blank)."""
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
    """Return all hits in a source, sorted by place.

    A check that raises is reported to `failed` and yields nothing; without `failed` its exception propagates.
    `cancelled` is polled between checks.
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
        ignored = _ignore_filter(source)
        found = [f for f in found if not ignored(f)]
    return sorted(set(found), key=lambda f: (f.span, f.check.id))


def _hits(check: Check, source: Source) -> Iterator[Hit]:
    """Yield a check's hits, each with the locations of the configuration values that it depends on."""
    if not isinstance(source, Code):
        yield from check.function(source)
        return
    known = len(resolved_expressions(source))
    for hit in check.function(source):
        yield with_origin(source, hit, known)
        known = len(resolved_expressions(source))


def _concerns(check: Check, code: Code) -> bool:
    """True if a check applies to this program; heuristics skip tests and the modules of packages."""
    if check.programs_only:
        return code.role == "program"
    return check.severity != "hint" or code.role == "program" or not (code.role == "test" or code.in_package)


def _ignore_filter(source: Source) -> Callable[[CheckedHit], bool]:
    """Return a predicate for the hits that the user's comments suppress."""
    by_line: dict[int, frozenset[str]] = {}
    everywhere: set[str] = set()
    for found in _IGNORE.finditer(source.text):
        ids = frozenset(_ids(found["ids"]))
        if found["file"]:
            everywhere |= ids
        else:
            by_line[source.text.place(found.start()).line] = ids

    def is_ignored(hit: CheckedHit) -> bool:
        first, last = (source.text.place(o).line for o in hit.span)
        if isinstance(source, Code):
            last = max(last, _last_line(source, first))
        rows = [by_line.get(line, frozenset()) for line in {first, last}]
        return any(_covers(i, hit.check) for i in (*rows, everywhere))

    return is_ignored


def _last_line(code: Code, first: int) -> int:
    """Return the last line of a simple statement that begins on a line, since its comment may be there."""
    ends = [s.end_lineno or 0 for s in code.statements_at(first) if not hasattr(s, "body")]
    return max(ends, default=first)


def _ids(text: str | None) -> Iterator[str]:
    yield from (i for i in re.split(r"[\s,]+", text) if i) if text is not None else ("*",)


def _covers(ids: AbstractSet[str], check: Check) -> bool:
    return any(i == "*" or check.id.startswith(i) or i == check.name for i in ids)
