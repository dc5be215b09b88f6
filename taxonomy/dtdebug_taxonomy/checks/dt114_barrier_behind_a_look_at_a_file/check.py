"""Collectives that a rank makes only if a file is missing, while rank 0 is creating that file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.diverging import collective_helpers, collectives, last_name
from dtdebug_taxonomy.checks.shared.elsewhere import reached_collective
from dtdebug_taxonomy.checks.shared.fixing import indent_of, own_lines
from dtdebug_taxonomy.checks.shared.handing_over import meets
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import SCOPES
from dtdebug_taxonomy.source.text import Span

_LOOKS = re.compile(r"(^|\.)(exists|isfile|isdir|is_file|is_dir|lexists)$")
_MAKES = re.compile(
    r"(?i)save|dump|write|download|copy|extract|mkdir|makedirs|touch|untar|unzip|retrieve|build|create|convert|cache|"
    r"generate|prepare|preprocess|clone|fetch|from_url"
)
_LOOKED = re.compile(r"exists\(|is_?file\(|is_?dir\(")
_BARRIER = re.compile(r"(?i)barrier|synchroni|wait_for")
_NO_MAKER = re.compile(r"(?i)log|print|warn")


def check(code: Code) -> Iterator[Hit]:
    """Report the collective."""
    if code.role == "test" or not _LOOKED.search(code.text):
        return
    seen: set[ast.AST] = set()
    for call in _waits(code):
        condition = _missing(code, call) or _left_before(code, call)
        if condition is None or condition in seen:
            continue
        inside = set(code.ancestors(call))
        if any(
            g.node not in inside or not _is_in_both_branches(code, g.node, condition, call)
            for g in guards(code).around(call)
        ):
            continue
        if _made_by_first(code, condition, call) is None or meets(code, condition, condition.body[0]):
            continue
        seen.add(condition)
        line = code.text.place(code.span(condition).start).line
        yield Hit(
            code.span(call),
            f"A rank that looks at line {line} after rank 0 has created the file skips {last_name(code, call)}(): "
            "the others wait for it until the timeout. Call it whether or not the file exists.",
            _fix(code, condition, call),
        )


def _fix(code: Code, condition: ast.If, call: ast.Call) -> Fix | None:
    """Return a fix that moves the last statement of the `if` after it."""
    statement = condition.body[-1]
    lines = own_lines(code, statement)
    if condition.orelse or not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    if lines is None or len(lines) != 1 or len(condition.body) == 1:
        return None
    start = code.text.starts[lines[0] - 1]
    outer, inner = indent_of(code, condition), indent_of(code, statement)
    edit = Edit(Span(start, start + len(inner)), outer)
    return Fix("Wait whether the file is there or not", (edit,), safe=False)


def _waits(code: Code) -> list[ast.Call]:
    """Return calls in which all ranks wait: collectives, and functions named like a barrier that make them."""
    calls = collectives(code)
    found = {*calls, *(c for f in collective_helpers(code) for c in code.callers.get(f, ()))}
    for call in code.nodes(ast.Call):
        if call not in found and code.project is not None and _BARRIER.search(last_name(code, call)):
            defined = code.project.resolve_call(code, call)
            if defined is not None and reached_collective(code.project, defined, 2):
                found.add(call)
    return sorted(found, key=code.order.__getitem__)


def _is_in_both_branches(code: Code, node: ast.AST, condition: ast.If, call: ast.Call) -> bool:
    """True if both branches of a condition on the rank, inside the test for the file, make the call."""
    if not isinstance(node, ast.If) or not any(a is condition for a in code.ancestors(node)):
        return False
    branches = (
        {last_name(code, c) for s in block for c in code.inside(s, ast.Call)} for block in (node.body, node.orelse)
    )
    return all(last_name(code, call) in names for names in branches)


def _left_before(code: Code, call: ast.Call) -> ast.If | None:
    """Return an earlier `if` of the function by which ranks that see the file return."""
    function = code.function(call)
    if function is None:
        return None
    for condition in function.body:
        if isinstance(condition, ast.If) and code.order[condition] < code.order[call] and not condition.orelse:
            returns = any(isinstance(n, ast.Return) for s in condition.body for n in ast.walk(s))
            if _asks_for_missing(code, condition.test) is False and returns:
                return condition
    return None


def _missing(code: Code, call: ast.Call) -> ast.If | None:
    """Return the innermost `if` around a call that tests for a missing or an existing file."""
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(up, SCOPES):
            return None
        if isinstance(up, ast.If) and inner is not up.test:
            missing = _asks_for_missing(code, up.test)
            if missing is not None and inner in (up.body if missing else up.orelse):
                return up
        inner = up
    return None


def _asks_for_missing(code: Code, test: ast.expr) -> bool | None:
    """True for `not os.path.exists(p)`, False for `os.path.exists(p)`, None otherwise."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = _asks_for_missing(code, test.operand)
        return None if found is None else not found
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        parts = {_asks_for_missing(code, v) for v in test.values}
        return True if True in parts else None
    if isinstance(test, ast.Call):
        last = test.func.attr if isinstance(test.func, ast.Attribute) else dotted_name(test.func)
        return False if _LOOKS.search(last) else None
    return None


def _made_by_first(code: Code, condition: ast.If, call: ast.Call) -> ast.Call | None:
    """Return a call by which rank 0 alone creates something between the test and the collective."""
    home = condition if any(a is condition for a in code.ancestors(call)) else code.function(call) or code.tree
    for made in code.inside(home, ast.Call):
        name = last_name(code, made)
        if not code.order[condition] < code.order[made] < code.order[call]:
            continue
        if not _MAKES.search(name) or _NO_MAKER.search(name):
            continue
        for guard in guards(code).around(made, early=False):
            inside = guard.node is not condition and code.order[guard.node] > code.order[condition]
            if inside and guard.test.value == "0" and guard.test.equal and guard.test.which in {"global", "local"}:
                return made
    return None
