"""Runs the checks on one source: selects those that apply and drops what the user suppressed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from typing import NamedTuple

from dtdebug_taxonomy.checks import UNUSED_IGNORE, Check, Fix, Hit, Severity, load
from dtdebug_taxonomy.checks.run.ignores import Ignores
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.checks.shared.origins import with_origin
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.config_values import resolved_expressions
from dtdebug_taxonomy.source.source import Kind, Source
from dtdebug_taxonomy.source.text import Span


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
    pieces = set(source.text.split())
    known = _recent.pop((source.kind, source.path), None) if source.path else None
    if known is None:
        joined, held = "\n".join(pieces), set()
        for word, part, is_piece in _words(source.kind):
            if is_piece and (not part or part in held) and word in joined:
                held.add(word)
    else:
        held = _words_after(source.kind, *known, pieces)
    if source.path:
        _recent[source.kind, source.path] = pieces, held
        if len(_recent) > _MOST_RECENT:
            del _recent[next(iter(_recent))]
    return held.union(word for word, _, is_piece in _words(source.kind) if not is_piece and word in source.text)


_recent: dict[tuple[Kind, str], tuple[set[str], set[str]]] = {}
"""Pieces of the texts examined last, and the words in them: in an editor most of a text is as it was."""
_MOST_RECENT = 8
_LONGEST_STATEMENT = 100
"""Maximum number of lines from the start of a statement to a hit in it."""


def _words_after(kind: Kind, before: set[str], held: set[str], pieces: set[str]) -> set[str]:
    """Return the words in the pieces of a text, given those of another text and the words in them."""
    added, removed = "\n".join(pieces - before), "\n".join(before - pieces)
    doubtful = {word for word in held if word in removed}
    rest = "\n".join(pieces) if doubtful else ""
    kept = {word for word in held if word not in doubtful or word in rest}
    return kept.union(word for word, _, is_piece in _words(kind) if is_piece and word in added)


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
    unused: bool = False,
) -> list[CheckedHit]:
    """Return all hits in a source, sorted by place.

    A check that raises is reported to `failed` and yields nothing; without `failed` its exception propagates.
    `cancelled` is polled between checks. With `unused`, comments that suppress nothing are hits too.
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
    if found or unused:
        ignores = Ignores(source)
        found = [f for f in found if not ignores.suppress(f.check, f.span)]
    found = _once_a_statement(source, found) if isinstance(source, Code) else found
    if unused and UNUSED_IGNORE.id in settings.enabled_ids(source.path):
        severity = settings.severity.get(UNUSED_IGNORE.id, UNUSED_IGNORE.severity)
        found += [CheckedHit(UNUSED_IGNORE, *row, severity, None) for row in ignores.unused(settings)]
    return sorted(set(found), key=lambda f: (f.span, f.check.id))


def _once_a_statement(code: Code, found: list[CheckedHit]) -> list[CheckedHit]:
    """Return the hits, but of those that say the same of one statement only the first, with the fixes of all."""
    groups: dict[Hashable, list[CheckedHit]] = {}
    for hit in sorted(set(found), key=lambda f: f.span):
        groups.setdefault((hit.check.id, hit.message, _statement_around(code, hit.span) or hit), []).append(hit)
    return [_joined(group) for group in groups.values()]


def _statement_around(code: Code, span: Span) -> ast.stmt | None:
    """Return the statement without a block that a span is in."""
    line = code.text.place(span.start).line
    for number in range(line, max(0, line - _LONGEST_STATEMENT), -1):
        for statement in code.statements_at(number):
            if not hasattr(statement, "body"):
                return statement if code.span(statement).end >= span.end else None
    return None


def _joined(group: list[CheckedHit]) -> CheckedHit:
    first, fixes = group[0], [hit.fix for hit in group if hit.fix is not None]
    if len(group) == 1 or len(fixes) < len(group) or {f.title for f in fixes} != {fixes[0].title}:
        return first
    edits = dict.fromkeys(edit for fix in fixes for edit in fix.edits)
    return first._replace(fix=fixes[0]._replace(edits=tuple(edits), safe=all(hit.safe for hit in group)))


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
