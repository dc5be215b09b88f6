"""The place in the user's own source that a cause is about, and the diff of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtdebug_taxonomy.inference.finding import Finding
from dtdebug_taxonomy.inference.shown_source import SHOWN
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import Cause
from dtdebug_taxonomy.model.snapshot import NEAR, Snapshot, SourceFinding


def own_edit(
    knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding], cause: Cause, *, likely: bool
) -> SourceFinding | None:
    """Return the finding in the user's source that a cause is about: the nearest one, with a diff if any has one.

    A finding elsewhere in the file counts for a likely cause, or if it is a fault and its check is for that cause.
    """
    rows = (f for f in places_in_source(knowledge, snapshot, findings) if _is_of(knowledge, f, cause, likely=likely))
    return min(rows, key=lambda f: (bool(f.check), NEAR.index(f.near), f.hint, not f.diff), default=None)


def places_in_source(
    knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding]
) -> tuple[SourceFinding, ...]:
    """Return what checks found in the user's files, in cells, and in the source that a text shows."""
    return (*snapshot.source_findings, *_of_findings(knowledge, snapshot, findings))


def _is_of(knowledge: Knowledge, found: SourceFinding, cause: Cause, *, likely: bool) -> bool:
    if found.cause == cause.id:
        return found.near != "file" or likely or not found.hint
    evidence = next((e.id for e in knowledge.evidence.values() if found.check in e.check), "")
    return evidence in cause.evidence and (found.near != "file" or (likely and not found.hint))


def _of_findings(knowledge: Knowledge, snapshot: Snapshot, findings: Sequence[Finding]) -> Iterator[SourceFinding]:
    failed = f"cell In[{snapshot.cell_numbers[-1]}]" if snapshot.cell_numbers else "the cell"
    for f in findings:
        if f.source == "checked" and (f.diff if f.file == SHOWN else f.file.startswith("cell ") or not f.file):
            yield SourceFinding(
                file=f.file or failed,
                line=f.line,
                check=f.check or knowledge.evidence[f.evidence].check[0],
                near="function" if f.file == SHOWN else f.near,
                words=f.words,
                fix=f.way,
                diff=f.diff,
            )
