"""Findings of the checks in files and cells of stacks: on a rank's line, in the function around it, or elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from dtdebug_taxonomy.checks import load
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.proving import format_patch, patch_of_cells, prove_fixes
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.knowledge.loader import Knowledge
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.model.snapshot import NEAR, Near, SourceFinding
from dtdebug_taxonomy.source.notebook import Notebook
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.stacks.frames import short

_SIMPLE: tuple[type[ast.stmt], ...] = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
MOST = 16
"""Maximum number of findings to keep, nearest first."""


def findings_in(
    knowledge: Knowledge,
    sources: Mapping[str, Source],
    stacks: Mapping[int | None, Sequence[Frame]],
    culprits: Sequence[int] = (),
    waits: bool = False,
) -> tuple[SourceFinding, ...]:
    """Return the findings in sources (file as the stacks name it -> its code), nearest to a line of a culprit first.

    Faults count, and what is an indicator of some symptom or cause; if ranks wait (`waits`), those of a symptom that a
    verdict on waiting ranks points at: how a checkpoint is named explains no hang.
    """
    shown = _of_waiting(knowledge) if waits else {*knowledge.symptoms}
    numbers = checks_of(knowledge)
    found: list[SourceFinding] = []
    for file, code in sources.items():
        places = [(rank, frame.line) for rank, stack in stacks.items() for frame in stack if frame.file == file]
        places.sort(key=lambda place: place[0] not in culprits)
        settings = Settings(select=numbers)
        hits = examine(code, settings, failed=lambda check, error: None)
        found += [
            _place_finding(file, code, hit, places, diff_of(short(file), code, hits, hit, settings))
            for hit in hits
            if not shown.isdisjoint(hit.check.symptom)
        ]
    found.sort(key=lambda f: (NEAR.index(f.near), f.rank not in culprits, f.file, f.line))
    return tuple(found[:MOST])


def findings_in_cells(  # noqa: PLR0917
    knowledge: Knowledge,
    cells: tuple[str, ...],
    names: Sequence[str],
    stacks: Mapping[int | None, Sequence[Frame]],
    culprits: Sequence[int] = (),
    waits: bool = False,
) -> tuple[SourceFinding, ...]:
    """Return the findings in the cells that stacks run through, nearest to a line of a culprit first.

    `names` are those of the cells, such as `In[3]`. A function and its launch stand in different cells, so that all of
    them are read as one program.
    """
    numbers = {f"cell {name}": number for number, name in enumerate(names)}
    frames = [(rank, f) for rank, stack in stacks.items() for f in stack if f.file in numbers]
    if not frames:
        return ()
    shown = _of_waiting(knowledge) if waits else {*knowledge.symptoms}
    notebook, hits = examine_cells(cells, checks_of(knowledge))
    code = notebook.code
    first = [code.text.place(notebook.begins(number)).line for number in range(len(cells))]
    places = sorted(
        ((rank, first[numbers[f.file]] + f.line - 1) for rank, f in frames), key=lambda place: place[0] not in culprits
    )
    settings = Settings(select=checks_of(knowledge))
    found: list[SourceFinding] = []
    for hit in hits:
        if shown.isdisjoint(hit.check.symptom):
            continue
        cell = notebook.place(code, hit.span).cell
        near = _place_finding(f"cell {names[cell]}", code, hit, places, "")
        if near.near == "file":
            continue
        message = notebook.message_in_cell(code, hit.span, hit.message, names)
        near = replace(near, line=near.line - first[cell] + 1, message=" ".join(message.split()))
        patch = patch_of_cells(notebook, code, hits, hit, names, settings)
        if patch is not None:
            near = replace(near, diff=patch.diff)
        if patch is not None and patch.cell != cell:
            words = notebook.cells[patch.cell][1].splitlines()[patch.line - 1].strip()[:200]
            near = replace(near, file=f"cell {names[patch.cell]}", line=patch.line, words=words)
        found.append(near)
    found.sort(key=lambda f: (NEAR.index(f.near), f.rank not in culprits, f.file, f.line))
    return tuple(found[:MOST])


@lru_cache(maxsize=1)
def examine_cells(cells: tuple[str, ...], numbers: tuple[str, ...]) -> tuple[Notebook, tuple[CheckedHit, ...]]:
    """Return the cells as one program, and what the checks of these numbers find there."""
    notebook = Notebook([("code", text) for text in cells])
    hits = examine(notebook.code, Settings(select=numbers), failed=lambda check, error: None)
    return notebook, tuple(hits)


def checks_of(knowledge: Knowledge) -> tuple[str, ...]:
    """Return the numbers of the checks that find a fault, or what is an indicator."""
    told = {number for e in knowledge.evidence.values() for number in e.check}
    return tuple(c.id for c in load().values() if c.id in told or c.severity in {"error", "warning"})


def _of_waiting(knowledge: Knowledge) -> set[str]:
    """Return the symptoms that verdicts on live ranks point at."""
    kinds = (e for e in knowledge.evidence.values() if any(not words.startswith("dead") for words in e.verdict))
    return {code for e in kinds for code in e.symptoms}


def claims(findings: Sequence[SourceFinding]) -> tuple[Claim, ...]:
    """Return the source's claims on ranks for a verdict: findings on their lines, and faults in functions around."""
    return tuple(
        Claim(
            what="source",
            ranks=() if f.rank is None else (f.rank,),
            record=Record(source="source", path=f.file, line=f.line, rank=f.rank, words=f.words),
            file=short(f.file),
            line=f.line,
            words=f"{f.check} {f.message}".rstrip("."),
        )
        for f in findings
        if f.near == "line" or (f.near == "function" and not f.hint)
    )


def diff_of(  # noqa: PLR0917
    name: str, source: Source, hits: Sequence[CheckedHit], hit: CheckedHit, settings: Settings, added: str = ""
) -> str:
    """Return the fix of a finding as a patch of a file of that name, without the text `added` at its top."""
    if hit.fix is None:
        return ""
    after = prove_fixes(source, hits, [hit], settings, follow=True).text
    return format_patch(name, *(text.replace(added, "", 1) for text in (str(source.text), after)))


def _place_finding(
    file: str, code: Source, hit: CheckedHit, places: Sequence[tuple[int | None, int]], diff: str
) -> SourceFinding:
    first, last = (code.text.place(offset).line for offset in hit.span)
    hint = hit.severity == "hint"
    near: Near = "file"
    whose: int | None = None
    if isinstance(code, Code):
        for rank, line in places:
            if (
                first <= line <= last
                or line in {begin_of_statement(code, first), *_branch(code, first)}
                or (not hint and first in _bound_for(code, line))
            ):
                near, whose = "line", rank
                break
            if near == "file" and _function(code, first) == _function(code, line):
                near, whose = "function", rank
    return SourceFinding(
        file=file,
        line=first,
        check=hit.check.id,
        cause=hit.check.cause,
        name=hit.check.name,
        message=" ".join(hit.message.split()),
        near=near,
        hint=hint,
        rank=whose,
        words=code.text.line(first).strip()[:200],
        fix=hit.fix.title if hit.fix is not None else "",
        diff=diff,
    )


def begin_of_statement(code: Code, line: int) -> int:
    """Return the line on which the simple statement around a line begins: where a traceback says that it raised."""
    held = (s.lineno for kind in _SIMPLE for s in code.nodes(kind) if s.lineno <= line <= (s.end_lineno or s.lineno))
    return next(held, line)


def _branch(code: Code, line: int) -> range:
    """Return the lines of the innermost `if` around a line: the branch that leads to it."""
    spans = [range(n.lineno, (n.end_lineno or n.lineno) + 1) for n in code.nodes(ast.If)]
    return min((s for s in spans if line in s), key=len, default=range(line, line + 1))


def _bound_for(code: Code, line: int) -> set[int]:
    """Return the lines that bind the variables which the statements of a line read: a wrong value fails at its use."""
    read = (n for s in code.statements_at(line) for n in code.inside(s, ast.Name) if isinstance(n.ctx, ast.Load))
    return {code.text.place(code.span(b.node).start).line for n in read for b in code.bound(n) if b.how == "assign"}


def _function(code: Code, line: int) -> tuple[int, int]:
    """Return (first, last) line of the innermost function around a line; (0, 0) for the module itself."""
    spans = [(f.lineno, f.end_lineno or f.lineno) for f in _functions(code) if f.lineno <= line <= (f.end_lineno or 0)]
    return max(spans, default=(0, 0))


def _functions(code: Code) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from code.nodes(ast.FunctionDef)
    yield from code.nodes(ast.AsyncFunctionDef)
