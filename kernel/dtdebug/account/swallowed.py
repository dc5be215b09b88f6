"""Finds the `except` that can have taken a rank around the call in which its peers wait.

What it caught is gone: Python keeps no exception that was handled. That it catches and continues is in the source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.model.account import Branch, Parting, Place, Side
from dtdebug_taxonomy.model.ranks import Frame, RankState, Verdict
from dtdebug_taxonomy.stacks.frames import is_library

_KINDS = frozenset({"skipped", "extra", "replaced", "not_arrived", "left"})
_BROAD = frozenset({"Exception", "BaseException", "RuntimeError"})
_LEAVING = (ast.Continue, ast.Break, ast.Return)


def swallowing(states: Iterable[RankState], verdict: Verdict, sources: Sources) -> Parting | None:
    """Return the only `except` around the others' place that a rank which went around it can have passed."""
    known = {s.rank: s for s in states if s.rank is not None and s.stack}
    gone = [r for r in verdict.culprits if r in known]
    staying = [r for r in verdict.waiting if r in known and r not in gone]
    if verdict.kind not in _KINDS or not gone or not staying:
        return None
    found = {
        (frame.file, handler.lineno): (frame, program, handler)
        for frame, program, handler in _around(known[staying[0]].stack, sources)
        if not any(_is_within(handler, other, frame) for rank in gone for other in known[rank].stack)
    }
    if len(found) != 1:
        return None
    ((frame, program, handler),) = found.values()
    up = program.code.parent[handler]
    lines = (up.body[0].lineno, up.body[-1].end_lineno or 0) if isinstance(up, ast.Try) else (0, 0)
    place = Place(file=frame.file, line=handler.lineno, function=frame.function, code=program.line(handler.lineno))
    sides = (Side(ranks=tuple(sorted(gone))), Side(ranks=tuple(sorted(staying)), result=False))
    last = handler.body[-1]
    leaves = type(last).__name__.lower() if isinstance(last, _LEAVING) and frame.line > last.lineno else ""
    branch = Branch(place=place, kind="try", held=(lines,), leaves=leaves)
    return Parting(branch=branch, text=program.line(frame.line), sides=sides, sure=False)


def _around(stack: Iterable[Frame], sources: Sources) -> Iterator[tuple[Frame, Program, ast.ExceptHandler]]:
    """Yield the handlers around the places of a stack that catch anything and continue."""
    for frame in stack:
        program = sources.of_user(frame.file) if not is_library(frame.file) else None
        for node in program.code.nodes(ast.Try) if program is not None else ():
            if program is None or not node.body[0].lineno <= frame.line <= (node.body[-1].end_lineno or 0):
                continue
            for handler in node.handlers:
                if _is_broad(handler) and not any(isinstance(n, ast.Raise) for n in ast.walk(handler)):
                    yield frame, program, handler
        if program is not None:
            yield from ((frame, program, handler) for handler in _before(frame.line, program))


def _before(line: int, program: Program) -> Iterator[ast.ExceptHandler]:
    """Yield the handlers that end a pass of the loop around a line before it comes there, if no test can do so, too."""
    code = program.code
    rows: list[ast.For | ast.AsyncFor | ast.While] = [
        *code.nodes(ast.For), *code.nodes(ast.AsyncFor), *code.nodes(ast.While)
    ]  # fmt: skip
    loops = [n for n in rows if n.lineno < line <= (n.end_lineno or 0)]
    if not loops:
        return
    body = max(loops, key=lambda n: n.lineno).body
    earlier = [n for stmt in body if (stmt.end_lineno or 0) < line for n in ast.walk(stmt)]
    leaving = [n for n in earlier if isinstance(n, _LEAVING)]
    handlers = [n for n in earlier if isinstance(n, ast.ExceptHandler) and isinstance(n.body[-1], _LEAVING)]
    if {id(n) for n in leaving} == {id(h.body[-1]) for h in handlers}:
        yield from handlers


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in _BROAD) for kind in kinds)


def _is_within(handler: ast.ExceptHandler, other: Frame, frame: Frame) -> bool:
    """True if a frame is still in the `try` of a handler, and so has not gone around what it holds."""
    return (other.file, other.function) == (frame.file, frame.function) and other.line < handler.lineno
