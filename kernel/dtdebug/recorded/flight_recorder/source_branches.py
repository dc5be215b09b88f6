"""Control flow between two source lines; the source is parsed, never imported."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import lru_cache

from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.ranks import Frame
from dtdebug_taxonomy.source.python.lenient_parser import parse_source

_WHOLE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_SOMETIMES = (ast.If, ast.Match, ast.Try, ast.TryStar, *_LOOPS)
"""Statements whose body need not run."""


@lru_cache(maxsize=64)
def tree(file: str) -> ast.Module | None:
    """Return the parsed file; None if it is missing, too large, or not Python of this release."""
    data = named_files.read_source(file)
    try:
        return parse_source(data) if data is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def fork(one: Sequence[Frame], other: Sequence[Frame]) -> tuple[Frame, Frame] | None:
    """Return the two frames, in one function, at which two stacks diverge."""
    for a, b in zip(one, other, strict=False):
        if (a.file, a.function) != (b.file, b.function):
            return None
        if a.line != b.line:
            return a, b
    return None


def exclusive(file: str, one: int, other: int) -> bool | None:
    """True if a condition lets only one of the two lines run; None if the source is missing."""
    parsed = tree(file)
    if parsed is None:
        return None
    for node in ast.walk(parsed):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list) and any(_forks(block, i, one, other) for i in range(len(block))):
                return True
    return False


def _forks(block: list[ast.stmt], at: int, one: int, other: int) -> bool:
    """True for an `if` with the lines in its two branches, or with one line in a branch that leaves the block."""
    node = block[at]
    if not isinstance(node, ast.If):
        return False
    rest = block[at + 1 :]
    for branch, behind in ((node.body, node.orelse), (node.orelse, node.body)):
        if not branch or not (one in _span(branch) or other in _span(branch)):
            continue
        outside = other if one in _span(branch) else one
        leaves = isinstance(branch[-1], ast.Return | ast.Continue | ast.Break | ast.Raise)
        if (behind and outside in _span(behind)) or (leaves and rest and outside in _span(rest)):
            return True
    return False


def left_loop(file: str, inside: int, after: int) -> bool | None:
    """True if one line is in a loop and the other after it, in the same block; None if the source is missing.

    In an outer loop around both, every pass must reach the second line: no condition may skip it.
    """
    parsed = tree(file)
    if parsed is None:
        return None
    for node in ast.walk(parsed):
        for found in (getattr(node, "body", None), getattr(node, "orelse", None)):
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for i, loop in enumerate(block):
                if not isinstance(loop, _LOOPS) or inside not in _span([loop]):
                    continue
                behind = next((s for s in block[i + 1 :] if after in _span([s])), None)
                if behind is not None:
                    return isinstance(node, _WHOLE) or not (isinstance(behind, _SOMETIMES) or _skips(node))
    return False


def comes_back(file: str, call: int, after: int) -> bool:
    """True if one line follows another in the same block, so that a rank at the second is back from the first."""
    parsed = tree(file)
    for node in ast.walk(parsed) if parsed is not None else ():
        for found in (getattr(node, "body", None), getattr(node, "orelse", None)):
            block: list[ast.stmt] = found if isinstance(found, list) else []
            at = next((i for i, each in enumerate(block) if call in _span([each])), None)
            if at is None or isinstance(block[at], _SOMETIMES):
                continue
            behind = next((each for each in block[at + 1 :] if after in _span([each])), None)
            if behind is not None:
                return not isinstance(behind, _SOMETIMES) and not (isinstance(node, _LOOPS) and _skips(node))
    return False


def _skips(loop: ast.AST) -> bool:
    """True if a pass may skip the rest of the body."""
    return any(isinstance(node, ast.Continue) for node in ast.walk(loop))


def _span(nodes: list[ast.stmt]) -> range:
    return range(nodes[0].lineno, (nodes[-1].end_lineno or nodes[-1].lineno) + 1)
