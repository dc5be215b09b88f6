"""The tests that choose which parameters an optimizer gets, and what decides how they turn out.

Two runs of one program give an optimizer other groups where such a test turns out in another way: a filter on
`requires_grad` leaves out what a stage has frozen.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from dtdebug.account.makers import creation
from dtdebug.account.objects import is_kind, loaded
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.source.python.names import dotted_name

_GROWS = frozenset({"append", "extend", "add", "insert"})
_STEPS = 3
"""Maximum number of names between the call that makes an optimizer and the parameters."""

Test = tuple[ast.AST, Scope]


def is_optimizer(value: object) -> bool:
    """True for an optimizer of torch, or of a class derived from it."""
    return is_kind(value, loaded("torch.optim", "Optimizer"))


def choosing_tests(node: ast.expr, scope: Scope, sources: Sources) -> Iterator[Test]:
    """Yield the tests that leave parameters out of an optimizer, then those under which what they ask for is set."""
    made = creation(node, scope, sources)
    if made is None or (program := made[1].program) is None:
        return
    call, home = made
    asked: set[str] = set()
    for test in _filters(call, program, home):
        names = {n.attr for n in ast.walk(test) if isinstance(n, ast.Attribute)}
        if names:
            asked |= names
            yield test, dataclasses.replace(home, line=getattr(test, "lineno", home.line))
    programs = [s.program for s in (home, scope, *scope.callers) if s.user and s.program is not None]
    for each in dict.fromkeys(programs):
        yield from _deciders(each, asked, (scope, *scope.callers))


def _filters(call: ast.Call, program: Program, home: Scope) -> Iterator[ast.expr]:
    """Yield the tests within the argument of the call, and over the lines that fill its lists."""
    inside = home.node or program.tree
    nodes: list[ast.AST] = [*call.args, *(k.value for k in call.keywords)]
    names: set[str] = set()
    for _ in range(_STEPS):
        new = {n.id for each in nodes for n in ast.walk(each) if isinstance(n, ast.Name)} - names
        names |= new
        rows = [row for name in sorted(new) for row in program.bindings.get((inside, name), ())]
        nodes += [row.value for row in rows if row.value is not None]
    for each in nodes:
        for part in ast.walk(each):
            if isinstance(part, ast.comprehension):
                yield from part.ifs
            elif isinstance(part, ast.Call) and dotted_name(part.func) == "filter" and part.args:
                yield from [part.args[0].body] if isinstance(part.args[0], ast.Lambda) else []
    for grown in program.code.nodes(ast.Call):
        func = grown.func
        if not (isinstance(func, ast.Attribute) and func.attr in _GROWS and program.code.scope(grown) is inside):
            continue
        if names & {n.id for n in ast.walk(func.value) if isinstance(n, ast.Name)}:
            yield from _tests_over(grown, program)


def _tests_over(node: ast.Call, program: Program) -> Iterator[ast.expr]:
    """Yield the tests that pass a line over: an `if` around it without another way, and one that continues above it."""
    for up in program.code.ancestors(node):
        if isinstance(up, ast.If) and not up.orelse:
            yield up.test
        for each in up.body if isinstance(up, ast.For | ast.While) else ():
            if isinstance(each, ast.If) and each.lineno < node.lineno and isinstance(each.body[-1], ast.Continue):
                yield each.test
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return


def _deciders(program: Program, asked: set[str], frames: tuple[Scope, ...]) -> Iterator[Test]:
    """Yield the tests under which a program sets an attribute, or the lines that set it under none."""
    code = program.code
    setting: list[ast.AST] = [call for name in sorted(asked) for call in code.methods(f"{name}_")]
    setting += [a for a in code.nodes(ast.Assign) if any(getattr(t, "attr", "") in asked for t in a.targets)]
    for each in setting:
        at: ast.AST = each
        function = code.function(at)
        test = _test_around(at, program)
        calls = code.callers.get(function, []) if function is not None and test is None else []
        if len(calls) == 1:
            at, function = calls[0], code.function(calls[0])
            test = _test_around(at, program)
        where = function or program.tree
        found = next((s for s in frames if s.program is program and s.node is where), None)
        found = found or Scope(program.file, 0, getattr(where, "name", ""), program=program, node=where)
        at = test if test is not None else at
        yield at, dataclasses.replace(found, line=getattr(at, "lineno", 0))


def _test_around(node: ast.AST, program: Program) -> ast.expr | None:
    for up in program.code.ancestors(node):
        if isinstance(up, ast.If):
            return up.test
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None
