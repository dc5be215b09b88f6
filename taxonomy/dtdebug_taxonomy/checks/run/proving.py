"""Verifies fixes before they are shown: the text parses, the hits are gone, no severe one and no divergence is new."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix
from dtdebug_taxonomy.checks.run.effects_of_fix import breaks
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.notebook import Notebook
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_ENDS = re.compile("\r?\n")


def apply(text: str, fixes: Iterable[Fix]) -> str:
    """Return the text with every fix that overlaps no earlier one; each is applied whole or not at all.

    Added lines use the text's line endings.
    """
    taken: list[Edit] = []
    for fix in fixes:
        new = [e for e in fix.edits if e not in taken]
        if not any(_overlap(e, t) for e in new for t in taken):
            taken += new
    ends = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(taken, key=lambda e: e.span, reverse=True):
        text = text[: edit.span.start] + _ENDS.sub(ends, edit.text) + text[edit.span.end :]
    return text


def _overlap(one: Edit, other: Edit) -> bool:
    """True if two edits touch the same text; two insertions at one place do, because their order is undefined."""
    if one.span.start == other.span.start:
        return True
    return one.span.start < other.span.end and other.span.start < one.span.end


_IMPORT = re.compile(r"(?:from [\w.]{1,100} )?import [\w.]{1,100}\n")
_GRAVE = ("error", "warning")
"""Severities whose new hits speak against a fix; hints that only become visible do not."""


class ProvenText(NamedTuple):
    """Text with fixes applied, and the hits that they fix."""

    text: str
    hits: tuple[CheckedHit, ...] = ()


def prove_fixes(
    source: Source,
    found: Sequence[CheckedHit],
    wanted: Sequence[CheckedHit],
    settings: Settings | None = None,
    *,
    follow: bool = False,
) -> ProvenText:
    """Return the text with as many of the wanted fixes as can be applied together.

    `found` are all hits of the source under these settings, including the wanted ones. Fixes that overlap, or that are
    valid only without an earlier one, are left out; they can come with the next call. With `follow`, a fix that needs
    another one, as a sampler needs to be told the epoch, comes with it.
    """
    with_fix = [f for f in wanted if f.fix is not None]
    if not with_fix:
        return ProvenText(str(source.text))
    proof = _Proof(source, found, settings or Settings(), follow=follow)
    if (text := proof.text(with_fix)) is not None:
        return ProvenText(text, tuple(with_fix))
    kept: list[CheckedHit] = []
    for hit in with_fix:
        if proof.text([*kept, hit]) is not None:
            kept.append(hit)
    return ProvenText(proof.text(kept) or str(source.text), tuple(kept))


def in_cells(
    notebook: Notebook, source: Source, found: Sequence[CheckedHit], hit: CheckedHit, settings: Settings
) -> dict[int, str]:
    """Return the texts of the cells that a hit's proven fix changes, by their numbers; none if it is not proven.

    An import is added to the first of them, which may run without the cells above.
    """
    if hit.fix is None or not prove_fixes(source, found, [hit], settings).hits:
        return {}
    return cells_with(notebook, source, hit.fix, _span_of_fix(notebook, source, hit))


class CellPatch(NamedTuple):
    """Diff of the cells that a hit's fix changes: what is launched in one is mostly defined in another."""

    cell: int
    line: int
    """First line of that cell that the fix changes, or the line of the hit."""
    diff: str


def patch_of_cells(  # noqa: PLR0917
    notebook: Notebook,
    source: Source,
    found: Sequence[CheckedHit],
    hit: CheckedHit,
    names: Sequence[str],
    settings: Settings,
) -> CellPatch | None:
    """Return the diff of the cells with a hit's proven fix; None if there is none; `names` are those of the cells."""
    after = in_cells(notebook, source, found, hit, settings)
    if not after:
        return None
    at = notebook.place(source, _span_of_fix(notebook, source, hit))
    line = notebook.cells[at.cell][1].count("\n", 0, at.span.start) + 1
    return CellPatch(at.cell, line, format_cell_patches(notebook, names, after))


def format_cell_patches(notebook: Notebook, names: Sequence[str], after: Mapping[int, str]) -> str:
    """Return one patch of the cells with these new texts, in the order of the notebook."""
    before = {cell: notebook.cells[cell][1] for cell in sorted(after)}
    return "".join(format_patch(names[cell], f"{text}\n", f"{after[cell]}\n") for cell, text in before.items())


def _span_of_fix(notebook: Notebook, source: Source, hit: CheckedHit) -> Span:
    """Return a span in a cell that a fix changes: that of the hit, or its first edit's if none is in that cell."""
    edits = sorted(e.span for e in hit.fix.edits if not _adds_import(e)) if hit.fix is not None else []
    cells = {notebook.place(source, span).cell for span in edits}
    return edits[0] if edits and notebook.place(source, hit.span).cell not in cells else hit.span


def _adds_import(edit: Edit) -> bool:
    return edit.span.start == edit.span.end and _IMPORT.fullmatch(edit.text) is not None


def cells_with(notebook: Notebook, source: Source, fix: Fix, span: Span) -> dict[int, str]:
    """Return the texts of the cells that a proven fix changes; none if an edit is of no cell's own text.

    An import above all of them is added to the first of them instead; `span` is in that cell if there is no other edit.
    """
    changed = [e.span for e in fix.edits if not _adds_import(e)] or [span]
    home = min(notebook.place(source, each).cell for each in changed)
    texts: dict[int, str] = {}
    for edit in sorted(fix.edits, reverse=True):
        cell, at = notebook.place(source, edit.span)
        if cell < home and _adds_import(edit):
            first = notebook.begins(home)
            cell, at = notebook.place(source, Span(first, first))
        text = texts.get(cell, notebook.cells[cell][1])
        cut, before = source.cut(edit.span), text[: at.start]
        if cut == f"{text[at.start :]}\n" and not edit.text:  # the last line, whose end is between the cells
            texts[cell] = before.removesuffix("\n")
        elif cut == text[at.start : at.end]:
            texts[cell] = before + edit.text + text[at.end :]
        else:
            return {}
    return texts


def prove_edit(source: Source, found: Sequence[CheckedHit], fix: Fix, settings: Settings) -> str | None:
    """Return the text with a fix that belongs to no check; None if it does not parse or brings a new severe hit."""
    return _Proof(source, found, settings).text_with([fix], ())


def format_patch(name: str, before: str, after: str) -> str:
    """Return the difference as a patch of a file, or of a cell such as `In[3]`; empty if there is none."""
    old, new = (name, name) if name.startswith("In[") else (f"a/{name}", f"b/{name}")
    rows = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), old, new)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


class _Proof:
    """Baseline that a text with fixes is compared with."""

    def __init__(
        self, source: Source, found: Sequence[CheckedHit], settings: Settings, *, follow: bool = False
    ) -> None:
        self.source, self.settings, self.follow = source, settings, follow
        self.before = Counter(f.check.id for f in found)

    def text(self, hits: Sequence[CheckedHit]) -> str | None:
        """Return the text with these fixes; None if they are not proven."""
        return self.text_with([f.fix for f in hits if f.fix is not None], [f.check.id for f in hits])

    def text_with(self, fixes: Sequence[Fix], fixed: Sequence[str]) -> str | None:
        """Return the text with fixes of hits of these checks; None if they are not proven."""
        after = apply(self.source.text, fixes)
        if after == self.source.text:
            return None
        left = self._hits_after(after, fixed)
        most = self.before - Counter(fixed)
        new = Counter(f.check.id for f in left or ()) - most
        if left and new and self.follow:
            after = apply(after, [f.fix for f in left if f.check.id in new and f.fix is not None])
            left = self._hits_after(after, fixed)
            new = Counter(f.check.id for f in left or ()) - most
        return after if left is not None and not new else None

    def _hits_after(self, after: str, fixed: Sequence[str]) -> list[CheckedHit] | None:
        """Return the severe hits of a text, and those of these checks; None if it can't be read."""
        result = self._read(after)
        if not self._reads_as_well(result):
            return None
        try:
            if isinstance(result, Code) and isinstance(self.source, Code) and breaks(self.source, result):
                return None
            return [f for f in examine(result, self.settings) if f.check.id in fixed or f.severity in _GRAVE]
        except Exception:  # a check that fails on the new text proves nothing
            return None

    def _read(self, text: str) -> Source:
        source = self.source
        if isinstance(source, Code):
            read: Source = Code(text, path=source.path, notebook=source.notebook)
        elif isinstance(source, Config):
            read = Config(text, path=source.path, language=source.language)
        else:
            read = type(source)(text, path=source.path)
        read.project = source.project
        return read

    def _reads_as_well(self, result: Source) -> bool:
        if isinstance(result, Code) and isinstance(self.source, Code):
            return result.whole or not self.source.whole
        return len(result.unread) <= len(self.source.unread)
