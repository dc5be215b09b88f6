"""Ranks and sizes from the environment that are compared with numbers while still strings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import RANKS, SIZES, VariableRead, reading
from dtdebug_taxonomy.checks.shared.values import is_number, returned_values
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_EQUAL = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def check(code: Code) -> Iterator[Hit]:
    """Report the comparison."""
    if "os" not in code.imports.values() and not any(v.startswith("os.") for v in code.imports.values()):
        return
    for compare in code.nodes(ast.Compare):
        sides = [compare.left, *compare.comparators]
        for one, other, op in zip(sides, sides[1:], compare.ops, strict=False):
            for text, number in ((one, other), (other, one)):
                if not _number(code, number, op):
                    continue
                found = _read(code, text)
                if found and not _asks_if_set(code, found, number, op):
                    yield _hit(code, compare, text, op, found)


def _read(code: Code, node: ast.expr) -> VariableRead | None:
    values = code.values(node) if dotted_name(node) else [node]
    if isinstance(node, ast.Call) and (function := code.local_function(node)) is not None:
        values = returned_values(code, function)
    found = [reading(code, v) for v in values]
    first = found[0] if found else None
    if first is None or any(f is None or f.variable != first.variable for f in found):
        return None
    return first if first.variable in RANKS | SIZES else None


def _number(code: Code, node: ast.expr, op: ast.cmpop) -> bool:
    if isinstance(op, ast.In | ast.NotIn):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return bool(node.elts) and all(is_number(code, e) for e in node.elts)
        return isinstance(node, ast.Call) and code.name(node.func) == "range"
    return isinstance(op, _EQUAL + _ORDERED) and is_number(code, node)


def _asks_if_set(code: Code, found: VariableRead, number: ast.expr, op: ast.cmpop) -> bool:
    """True for tests like `get("LOCAL_RANK", -1) != -1`, which correctly ask whether the variable is set."""
    if found.default is None or not isinstance(op, _EQUAL):
        return False
    default, value = code.source_of(found.default), code.source_of(number)
    return default == value and (default == "-1" or found.variable in SIZES)


def _hit(code: Code, compare: ast.Compare, text: ast.expr, op: ast.cmpop, found: VariableRead) -> Hit:
    start = f"{found.variable} is read from the environment as a string"
    if isinstance(op, _ORDERED):
        message = f"{start} and is compared with a number: this raises TypeError."
    else:
        how = "never" if isinstance(op, ast.Eq | ast.In) else "always"
        message = f"{start}, which never equals a number: this condition is {how} true once the launcher has set it."
    edit = Edit(code.span(text), f"int({code.source_of(text)})")
    safe = found.must or is_number(code, found.default)
    return Hit(code.span(compare), message, Fix("Compare it as a number", (edit,), safe=safe))
