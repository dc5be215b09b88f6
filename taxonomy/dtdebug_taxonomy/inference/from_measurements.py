"""Findings from measurements: the verdict on the ranks, the watched invariants, and checks of the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import msgspec

from dtdebug_taxonomy.inference import from_ranks
from dtdebug_taxonomy.inference.finding import Finding, from_hit
from dtdebug_taxonomy.inference.shown_source import SHOWN, hits_in_shown
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.knowledge.schema import Evidence
from dtdebug_taxonomy.logs.relevance import is_explained
from dtdebug_taxonomy.model.snapshot import Snapshot, walk
from dtdebug_taxonomy.text.matchers import in_order, matchers_of
from dtdebug_taxonomy.text.pattern_matcher import plain

_COMMUNICATION = frozenset(("B.1", "B.2", "D.1.1"))
"""Symptoms of communication between ranks."""
_RAISED = 32
"""Maximum number of different exceptions of ranks that are examined."""


def of_ranks(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings from the verdict on the ranks, its culprits' stacks, and the ranks' exceptions, culprits first."""
    verdict = snapshot.verdict
    culprits = set(verdict.culprits) if verdict else set()
    states = sorted((r for r in snapshot.ranks if r.rank is not None), key=lambda r: r.rank not in culprits)
    if verdict is not None:
        accused = [r for r in states if r.rank in culprits]
        counted = "uneven" if from_ranks.uneven(states) else ""
        rounds = "loop_ended" if from_ranks.loop_ended(verdict) else ""
        more = {*(r.signal for r in accused), counted, rounds} - {""}
        said = any(c.what == "raised" for c in verdict.claims) or any(r.exception for r in accused)
        aspect = from_ranks.aspect(verdict)
        more |= {aspect} - {""}
        said = said and verdict.kind == "dead"  # its exception says more than its end
        awaited = verdict.kind != "not_arrived" or bool(verdict.waiting)  # else no rank waits for it
        words = {"" if said or aspect or not awaited else verdict.kind, *(f"{verdict.kind} {word}" for word in more)}
        places = {f"{f.file.replace(chr(92), '/')} {f.function}": r.rank for r in accused for f in r.stack}
        for e in knowledge.evidence.values():
            if not (e.verdict or e.stack) or (e.verdict and words.isdisjoint(e.verdict)):
                continue
            where = [place for place in places if any(re.search(p, place) for p in e.stack)]
            if where or not e.stack:
                rank = places[where[0]] if where else min(culprits, default=None)
                yield Finding(evidence=e.id, source="measured", words=plain(verdict.summary), rank=rank)
    raised: dict[str, int | None] = {}
    for r in states:
        if r.exception:
            raised.setdefault(r.exception, r.rank)
    explained = is_explained(verdict)
    for text, rank in islice(raised.items(), _RAISED):
        for hit in in_order(matchers_of(knowledge).output_matcher.hits(text)):
            known = knowledge.evidence.get(hit.key)
            if explained and known is not None:
                adds = not (is_of_any_library(known) if rank in culprits else known.role == "cascade")
            else:
                adds = True
            if adds:
                yield from_hit(hit, "exception", rank)


def of_watch(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings from the invariants violated during training, and from the ranks that were late."""
    by_name = {name: e.id for e in knowledge.evidence.values() for name in e.watch}
    rows = [(v.invariant, v.ranks, v.means) for v in snapshot.watched]
    rows += [(f"late {row.phase}", row.ranks, row.means) for row in snapshot.late]
    for name, ranks, means in rows:
        if name in by_name:
            rank = ranks[0] if len(ranks) == 1 else None
            yield Finding(evidence=by_name[name], source="measured", words=plain(means), rank=rank)


def of_source(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings of the checks in the files that stacks name, nearest first."""
    by_check = _by_check(knowledge)
    verdict = snapshot.verdict
    raised = verdict.culprits if verdict is not None and verdict.kind == "dead" else ()
    waits = verdict is not None and verdict.kind not in {"dead", "none"}
    for f in snapshot.source_findings:
        bears = waits or not f.hint or f.near == "line"  # a hint elsewhere says nothing of an exception
        if f.check in by_check and bears and not f.file.startswith("cell "):
            yield Finding(
                evidence=by_check[f.check],
                source="checked",
                file=f.file,
                line=f.line,
                words=plain(f.words),
                rank=f.rank if f.near != "file" else None,
                near=f.near,
                diff=f.diff,
                check=f.check,
                told=f.message if f.near == "line" and f.rank in raised else "",
                way=f.fix,
            )


def of_cell(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings of the checks in the failed cell, and on lines of any cell where the exception passed."""
    by_check = _by_check(knowledge)
    if not snapshot.cell.strip() or not by_check:
        return
    from dtdebug_taxonomy.checks.run.proving import patch_of_cells
    from dtdebug_taxonomy.checks.run.settings import Settings
    from dtdebug_taxonomy.inference.from_source import begin_of_statement, checks_of, examine_cells

    notebook, hits = examine_cells((*snapshot.cells, snapshot.cell), checks_of(knowledge))
    code, last = notebook.code, len(snapshot.cells)
    settings = Settings(select=checks_of(knowledge))
    stacks = _lines_of_cells(snapshot)
    around = {(f.file, f.line): f for f in snapshot.source_findings if f.near != "file" and not f.hint}
    for hit in hits:
        if hit.check.id not in by_check:
            continue
        at = notebook.place(code, hit.span)
        name = cell_name(snapshot, at.cell)
        place = begin_of_statement(code, code.text.place(hit.span.start).line)
        line = place - code.text.place(notebook.begins(at.cell)).line + 1  # as Python counts, below a cell's magic
        words = code.text.line(place).strip()
        failing = (f"cell {name}", line) in stacks or (line, words) in stacks
        beside = around.get((f"cell {name}", line))
        if not failing and beside is None and (at.cell != last or hit.severity == "hint"):
            continue
        found = Finding(
            evidence=by_check[hit.check.id],
            source="checked",
            file="" if at.cell == last else f"cell {name}",
            line=line,
            words=plain(words),
        )
        if failing:
            names = [cell_name(snapshot, n) for n in range(len(notebook.cells))]
            message = notebook.message_in_cell(code, hit.span, hit.message, names)
            patch = patch_of_cells(notebook, code, hits, hit, names, settings)
            found = msgspec.structs.replace(
                found,
                near="line",
                diff="" if patch is None else patch.diff,
                check=hit.check.id,
                told=message if hit.severity != "hint" else "",
                way=hit.fix.title if hit.fix is not None else "",
            )
            if patch is not None and patch.cell != at.cell:
                found = msgspec.structs.replace(found, file=f"cell {names[patch.cell]}", line=patch.line)
        elif beside is not None and beside.check == hit.check.id:
            found = msgspec.structs.replace(
                found, file=beside.file, near=beside.near, rank=beside.rank, diff=beside.diff, check=beside.check
            )
        yield found


def cell_name(snapshot: Snapshot, number: int) -> str:
    """Return the name of the cell with an index among those of a snapshot, as the notebook shows it: `In[3]`."""
    numbers = snapshot.cell_numbers
    return f"In[{numbers[number]}]" if number < len(numbers) and numbers[number] else "cell"


def _lines_of_cells(snapshot: Snapshot) -> set[tuple[str | int, str | int]]:
    """Return (cell, line), and (line, source line), of every frame of an exception or of a waiting rank."""
    frames = [f for info in walk(snapshot.exception) for f in info.frames]
    frames += [f for r in snapshot.ranks for f in r.stack if f.file.startswith("cell ")]
    sites = snapshot.verdict.sites if snapshot.verdict is not None else ()
    places = [*((f.file, f.line) for f in frames), *((site.file, site.line) for site in sites)]
    return {
        *((f.line, f.code.strip()) for f in frames if f.code.strip()),
        *((file, line) for file, line in places if file.startswith("cell ")),
    }


def of_shown(knowledge: Knowledge, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings of the checks in the source that a text shows along with the failure.

    A hint is no sign of what failed: it explains a failure that other findings show (`source_check.explain_hint`).
    """
    by_check = _by_check(knowledge)
    for found in hits_in_shown(snapshot):
        if found.hit.check.id in by_check and found.hit.severity != "hint":
            yield Finding(
                evidence=by_check[found.hit.check.id],
                source="checked",
                file=SHOWN,
                line=found.line,
                words=plain(found.words),
                diff=found.diff,
                check=found.hit.check.id,
            )


@lru_cache(maxsize=4)
def _by_check(knowledge: Knowledge) -> dict[str, str]:
    """Return id of a check -> the evidence that it finds."""
    return {number: e.id for e in knowledge.evidence.values() for number in e.check}


def is_of_any_library(found: Evidence) -> bool:
    """True for words of communication that any library may print: they concern ranks only where ranks communicate."""
    return found.generic and bool(found.symptoms) and _COMMUNICATION.issuperset(found.symptoms)
