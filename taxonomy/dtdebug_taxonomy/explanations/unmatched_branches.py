"""A function that returns None, for it has no branch for the value that it was given."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dtdebug_taxonomy.explanations.account_words import find_spans, replace_expression
from dtdebug_taxonomy.explanations.faults import Fault
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.model.account import Link
from dtdebug_taxonomy.text.near_names import near_name
from dtdebug_taxonomy.text.value_texts import read_value

_MOST = 6


def of_unmatched(words: str, chain: Sequence[Link]) -> Fault | None:
    """Return the value that no branch of a function is for, with those that have one; `words` is what it returned."""
    tests = [link for link in chain if link.how == "tested" and link.value.text == "False"]
    at = chain.index(tests[0]) if tests else 0
    end = chain[at - 1] if at else None
    if end is None or end.how != "returned" or end.value.text != "None":
        return None
    compared = [found for link in tests if (found := _comparison(link.value.name)) is not None]
    subject = compared[0][0] if len(compared) == len(tests) else ""
    known = [word for _, values in compared for word in values]
    below = chain[at + len(tests) :]
    first = next((link.value.text for link in below if link.value.name == subject and link.value.text), "")
    given = next((link for link in reversed(below) if first and link.value.text == first), None)
    value = read_value(given.value.text) if given is not None else None
    if not subject or given is None or value is None or value.plain is None or value.plain in known:
        return None
    near = near_name(value.plain, [k for k in known if isinstance(k, str)]) if isinstance(value.plain, str) else ""
    spans = find_spans(given.place.code, (repr(value.plain),)) if near else []
    edit = replace_expression(given.place, spans[0], f'"{near}"') if len(spans) == 1 else None
    listed = " or ".join(map(repr, known[:_MOST]))
    name = end.place.function
    said = f"`{words}` is None: `{name}` has no branch for {value.plain!r} but for {listed}"
    fix = f"write {near!r}." if near else f"give one of these, or let `{name}` raise for what it does not know."
    return Fault(said, fix, given, edit, given.place, likely=True)


def _comparison(test: str) -> tuple[str, tuple[object, ...]] | None:
    """Return the subject of a comparison with literals, and these."""
    match parse_line(test):
        case ast.Module(
            body=[ast.Expr(value=ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant() as one]))]
        ):
            return ast.unparse(left), (one.value,)
        case ast.Module(
            body=[
                ast.Expr(
                    value=ast.Compare(
                        left=left, ops=[ast.In()], comparators=[ast.Tuple() | ast.List() | ast.Set() as row]
                    )
                )
            ]
        ):
            each = [n.value for n in row.elts if isinstance(n, ast.Constant)]
            return (ast.unparse(left), tuple(each)) if len(each) == len(row.elts) else None
    return None
