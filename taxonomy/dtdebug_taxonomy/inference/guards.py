"""The comparison that decided over a line that raises, among the tests of a library's source that led there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import MAX_TEXT, NamedValue, Refusal
from dtdebug_taxonomy.text.demands import Scope, is_met
from dtdebug_taxonomy.text.value_texts import Value, read_value

_MESSAGE = 30
"""Length from which the strings of a list are messages: what they say is in the error already."""


def decisive_test(refusal: Refusal) -> tuple[str, bool, tuple[NamedValue, ...]] | None:
    """Return the comparisons that went as the innermost test did, the way they went, and their operands.

    None if the values decide none of them.
    """
    values = {v.name: value for v in refusal.values if v.text and (value := read_value(v.text)) is not None}
    for text, way in refusal.tests:
        tree = _parse(text, way)
        clauses = [c for c in _clauses(tree) if _is_known(c, values)] if tree is not None else []
        went = [c for c in clauses if is_met(ast.unparse(c), Scope(values)) is way]
        operands = tuple(v for v in refusal.values if v.text and any(v.name in _parts(c) for c in went))
        if went and operands and not any(_holds_messages(values.get(v.name)) for v in refusal.values):
            return " and ".join(dict.fromkeys(ast.unparse(c) for c in went)), way, operands
    return None


def _parse(text: str, way: bool) -> ast.AST | None:
    """Return the tree of a test; of one that was cut off, the parts before that each had to be so."""
    tree = parse_line(text)
    if tree is None and way and len(text) >= MAX_TEXT and " or " not in text:
        tree = parse_line(text.rpartition(" and ")[0])
    return tree


def _clauses(node: ast.AST) -> Iterator[ast.Compare]:
    """Yield the comparisons of a test that are not negated."""
    if isinstance(node, ast.Compare):
        yield node
    elif not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        for child in ast.iter_child_nodes(node):
            yield from _clauses(child)


def _is_known(clause: ast.Compare, values: Mapping[str, Value]) -> bool:
    """True if each attribute and call means the same in Python as in the language, or has a value of its own."""
    return all(
        ast.unparse(n) in values
        or (isinstance(n, ast.Attribute) and n.attr in {"shape", "ndim", "dtype"})
        or (isinstance(n, ast.Call) and ast.unparse(n.func) == "len")
        for n in ast.walk(clause)
        if isinstance(n, ast.Attribute | ast.Call)
    )


def _parts(clause: ast.Compare) -> frozenset[str]:
    return frozenset(ast.unparse(n) for n in ast.walk(clause) if isinstance(n, ast.expr))


def _holds_messages(value: Value | None) -> bool:
    if value is None or value.kind != "sequence":
        return False
    return any(item.kind == "text" and (item.length is None or item.length > _MESSAGE) for item in value.items)
