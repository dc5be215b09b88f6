"""Finds the `return`, `break` or `sys.exit` by which a rank can have left the loop that its peers are still in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug.recorded.flight_recorder import source_branches
from dtdebug.recorded.flight_recorder.verdict_input import Records
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.model.claims import Claim, Record
from dtdebug_taxonomy.model.ranks import EXITED, Frame, RankState
from dtdebug_taxonomy.stacks.frames import own_frames, place_claim

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_UNSYNCHRONISED = ("no_sync", "set_requires_gradient_sync", "accumulate")
_EXITS = ("exit", "quit", "sys.exit", "os._exit")


class WayOut(NamedTuple):
    """The only statement that leaves the loops of a rank's last call early."""

    claim: Claim
    certain: bool
    """True if nothing else ends the loops: they are endless or literal in number, and each pass makes the call."""


def way_out(records: Records, state: RankState) -> WayOut | None:
    """Return how a finished rank left its loops; None if the source has several ways, or none.

    A rank that reports the call that ended its program needs no source.
    """
    p = records.programs.get(state.rank if state.rank is not None else -1)
    if p is None or EXITED in state.facts or not len(p.order):
        return None
    found: list[Frame] = []
    certain = True
    for frame in own_frames(p.site(len(p.order) - 1)):
        ways = ways_of(frame)
        if ways is None:
            return None
        found += ways.statements
        certain = certain and ways.certain
    if len(found) != 1:
        return None
    words = f"`{found[0].code}` leaves the loop of its last call" + ("" if certain else ", unless that came to its end")
    record = Record(source="source", path=found[0].file, line=found[0].line, words=found[0].code)
    ranks = () if state.rank is None else (state.rank,)
    return WayOut(place_claim(Claim(what="source", ranks=ranks, record=record, words=words), found[0]), certain)


class Ways(NamedTuple):
    """Statements that leave the loops around one line."""

    statements: list[Frame]
    certain: bool
    """True if nothing else ends the loops."""


def ways_of(frame: Frame) -> Ways | None:
    """Return the statements that leave the loops around a line; None if the source is missing."""
    tree = source_branches.tree(frame.file)
    if tree is None:
        return None
    function = _function(tree, frame.line)
    loops = _loops(function, frame.line)
    nodes = [node for n, loop in enumerate(loops) for node in _leaving(loop, returns=n == 0, breaks=True)]
    shown = named_files.is_shown(frame.file)
    words = (ast.unparse(node)[:80] if shown else type(node).__name__.lower() for node in nodes)
    found = [Frame(frame.file, node.lineno, frame.function, said) for node, said in zip(nodes, words, strict=True)]
    certain = all(_is_fixed(loop) and _is_in_every_pass(loop, frame.line) for loop in loops)
    return Ways(found, certain and not _is_guarded(function, frame.line))


def runs_out(frame: Frame) -> bool:
    """True if the loops around a line end only when their iterables do, and each pass calls there.

    They are not `while` loops, nothing leaves them early, their number of passes is not a literal, and no pass skips
    the call: by a condition, or in DDP's `no_sync()`.
    """
    tree, ways = source_branches.tree(frame.file), ways_of(frame)
    if tree is None or ways is None or ways.statements:
        return False
    loops = _loops(_function(tree, frame.line), frame.line)
    if all(_is_fixed(loop) for loop in loops) or any(isinstance(loop, ast.While) for loop in loops):
        return False
    return all(_is_in_every_pass(loop, frame.line) and not _is_unsynchronised(loop) for loop in loops)


def _function(tree: ast.Module, line: int) -> ast.AST:
    """Return the innermost function, or the module, that contains the line."""
    inside: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0):
            inside = node  # an inner function is visited later
    return inside


def _loops(function: ast.AST, line: int) -> list[ast.For | ast.While | ast.AsyncFor]:
    """Return the loops of the function that contain the line, the outermost first."""
    loops = (n for n in _walk_function(function) if isinstance(n, _LOOPS))
    return sorted((n for n in loops if n.lineno <= line <= (n.end_lineno or 0)), key=lambda n: n.lineno)


def _leaving(inside: ast.AST, *, returns: bool, breaks: bool) -> Iterator[ast.stmt | ast.expr]:
    """Yield the statements that end a loop from inside: its own `break`, a `return`, a call that ends the program."""
    for node in ast.iter_child_nodes(inside):
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.stmt | ast.expr) and (
            (breaks and isinstance(node, ast.Break)) or (returns and _ends_more(node))
        ):
            yield node
        else:
            yield from _leaving(node, returns=returns, breaks=breaks and not isinstance(node, _LOOPS))


def _ends_more(node: ast.AST) -> bool:
    """True if the node leaves the function or the program."""
    exits = isinstance(node, ast.Call) and ast.unparse(node.func) in _EXITS
    return exits or isinstance(node, ast.Return | ast.Raise)


def _walk_function(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, _FUNCTIONS):
            yield node
            yield from _walk_function(node)


def _is_in_every_pass(loop: ast.For | ast.While | ast.AsyncFor, line: int) -> bool:
    """True if every pass of the loop reaches that line: no condition, no `continue`."""
    if any(isinstance(node, ast.Continue) for node in _walk_function(loop)):
        return False
    around = [n for n in _walk_function(loop) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    return not any(isinstance(node, ast.If | ast.Match | ast.Try | ast.TryStar) for node in around)


def _is_unsynchronised(loop: ast.AST) -> bool:
    """True if some backward passes of the loop reduce nothing, which each rank may decide."""
    return any(isinstance(node, ast.Attribute) and node.attr in _UNSYNCHRONISED for node in _walk_function(loop))


def _is_guarded(function: ast.AST, line: int) -> bool:
    """True if the function may handle an exception raised there: that leaves a loop too."""
    tries = (n for n in _walk_function(function) if isinstance(n, ast.Try | ast.TryStar) and n.handlers)
    return any(n.lineno <= line <= (n.end_lineno or 0) for n in tries)


def _is_fixed(loop: ast.For | ast.While | ast.AsyncFor) -> bool:
    if isinstance(loop, ast.While):
        return isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    call = loop.iter
    if not isinstance(call, ast.Call) or call.keywords:
        return False
    name = ast.unparse(call.func)
    return name in ("count", "itertools.count") or (
        name == "range" and all(isinstance(a, ast.Constant) for a in call.args)
    )
