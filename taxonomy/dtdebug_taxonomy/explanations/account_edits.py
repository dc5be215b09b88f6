"""Edits of the user's line that make a broken contract hold: proven by its tree and by the numbers that meet."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from math import prod

from dtdebug_taxonomy.explanations import contract_repairs
from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.inference.account_call import parse_line, work_out
from dtdebug_taxonomy.inference.contracts import Broken
from dtdebug_taxonomy.model.account import Link, Place
from dtdebug_taxonomy.text.contract_call import UserCall, fill, show
from dtdebug_taxonomy.text.demands import Plain, UnknownTermError, apply_operator, is_met, sides, value_of
from dtdebug_taxonomy.text.value_texts import Value, read_value

__all__ = ["UNTYPED", "Edit", "of_contract", "option_to_pass", "typed_option", "written_as_number"]

_OPTION = re.compile(r"['\"](--[\w-]{1,40})['\"]")
_TEXT = re.compile(r"'(?P<whole>-?\d{1,12})'|'-?\d{0,12}\.?\d{1,12}(?:e[+-]?\d{1,3})?'")
"""A number that is a text."""
_WORLD = frozenset({"world_size", "members"})


def of_contract(found: Broken, link: Link | None) -> Edit | None:
    """Return the edit after which the demand is met: at the call, or where the number was decided."""
    contract, account, call = found
    place = account.place
    about = call.expressions.get(contract.about)
    if (edit := contract_repairs.edit_of(found)) is not None or contract.instead:
        return edit
    size = call.scope.values.get("members") or call.scope.values.get("world_size")
    taken = contract_repairs.taken_for_ranks(found)
    if taken is not None and size is not None and isinstance(size.plain, int):
        edit = _literal(taken, int(taken.value.text), size.plain)
        if edit is not None:
            return edit
    given, wanted = _numbers(found)
    if given is None or wanted is None:
        return None
    if link is not None and (edit := _without_constant(found, link)) is not None:
        return edit
    if (edit := contract_repairs.by_other_side(found, given)) is not None:
        return edit
    if place is not None and about is not None and (edit := _at_call(found, place, about[1], (given, wanted))):
        return edit
    if link is None or link.place == place:
        return None
    return _counted(link.place, call, given, wanted) or _literal(link, given, wanted)


def typed_option(link: Link | None) -> Edit | None:
    """Return the edit that gives an option a `type`, where a number given on the command line stayed text."""
    text = _TEXT.fullmatch(link.value.text) if link is not None and link.how == "option" else None
    tree = parse_line(link.place.code) if link is not None and text is not None else None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree is not None else []
    call = next((n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "add_argument"), None)
    if link is None or text is None or call is None or not call.args or not link.place.code.isascii():
        return None
    if any(k.arg in {"type", "action", None} for k in call.keywords):
        return None
    at, kind = call.args[-1].end_col_offset or 0, "int" if text["whole"] else "float"
    code = f"{link.place.code[:at]}, type={kind}{link.place.code[at:]}"
    return Edit(link.place, code) if parse_line(code) is not None else None


def written_as_number(link: Link | None) -> str:
    """Return how a configuration file has to write a number that is a text there; empty if it is none."""
    if link is None or link.how != "file" or not _TEXT.fullmatch(link.value.text):
        return ""
    number = link.value.text.strip("'")
    if re.search(rf"[\"']{re.escape(number)}[\"']", link.place.code):
        return f"{number}, without quotes"
    base, _, power = number.partition("e")
    if not power:
        return number
    sign = "" if power[0] in "+-" else "+"
    return f"{base if '.' in base else f'{base}.0'}e{sign}{power}"


UNTYPED = "give the option a `type`: without one, what is passed stays text."
"""Fix of such an option."""


def option_to_pass(found: Broken, link: Link) -> str:
    """Return the option with the value that fits; empty if another number than the option's is compared."""
    given, wanted = _numbers(found)
    option = _OPTION.search(link.place.code)
    if option is None or given is None or wanted is None or link.value.text != show(given):
        return ""
    return f"{option[1]} {show(wanted)}"


def _numbers(found: Broken) -> tuple[int | None, int | None]:
    """Return (number that was given, number that is demanded) of a demand of equality."""
    left, operator, right = sides(found.contract.demand)
    if operator not in {"Eq", "GtE"}:
        return None, None
    try:
        pair: tuple[Plain, Plain] = value_of(left, found.call.scope), value_of(right, found.call.scope)
    except UnknownTermError:
        return None, None
    one, other = pair
    return (one, other) if isinstance(one, int) and isinstance(other, int) and one != other else (None, None)


def _at_call(found: Broken, place: Place, span: tuple[int, int], numbers: tuple[int, int]) -> Edit | None:
    """Return the edit of a number within the argument itself: `[None] * 3`, `range(get_world_size() + 1)`."""
    given, wanted = numbers
    inside = [s for s in find_spans(place.code, (str(given),)) if span[0] <= s[0] and s[1] <= span[1]]
    if edit := _counted(place, found.call, given, wanted):
        return edit
    if len(inside) != 1:
        return None
    right = sides(found.contract.demand)[2]
    written = str(wanted)
    if found.contract.write and right in _WORLD and found.call.module.isidentifier():
        written = fill(found.contract.write, found.call, {"module": found.call.module})
    return replace_expression(place, inside[0], written)


def _counted(place: Place, call: UserCall, given: int, wanted: int) -> Edit | None:
    """Return the edit of `get_world_size() + 1`, where that gives the wrong number and the call alone the right one."""
    tree = parse_line(place.code)
    if tree is None or not place.code.isascii() or _world(call) != wanted:
        return None
    found = [
        (n, side)
        for n in ast.walk(tree)
        if isinstance(n, ast.BinOp)
        for side, other in ((n.left, n.right), (n.right, n.left))
        if isinstance(side, ast.Call) and ast.unparse(side.func).endswith("get_world_size")
        and isinstance(other, ast.Constant) and _result(n, side, wanted) == given
    ]  # fmt: skip
    if len(found) != 1 or place.code.startswith("elif"):
        return None
    node, side = found[0]
    begin, end = node.col_offset, node.end_col_offset or 0
    around = place.code[: begin - 1].rstrip()[-1:]
    if (
        place.code[begin - 1 : begin] == "("
        and place.code[end : end + 1] == ")"
        and not (around.isalnum() or around in "_)]")
    ):
        begin, end = begin - 1, end + 1  # parentheses of the sum, not of a call
    return replace_expression(place, (begin, end), ast.unparse(side))


def _without_constant(found: Broken, link: Link) -> Edit | None:
    """Return the edit that leaves a constant out of an expression, if the demand is met with the number that it gives.

    `flat.numel() // (world - 1)` for `flat.numel() // world`. None if no such edit fits, or several do.
    """
    contract, account, call = found
    text, code = call.texts.get(contract.about, ""), link.place.code
    tree = parse_line(code)
    if tree is None or not text or not code.isascii() or code.startswith("elif"):
        return None
    known = [*account.links, *(Link(value=a, how="passed", place=link.place) for a in account.facts)]
    around = {e.value.name: v for e in reversed(known) if (v := read_value(e.value.text)) is not None}
    around |= {f"__{name.replace(' ', '_')}__": v for name, v in around.items() if name in {"rank", "world size"}}
    edits: dict[str, Edit] = {}
    for outer, inner, kept in _arithmetic(tree):
        before = _number(outer, around)
        begin, end = _with_parentheses(code, inner, kept)
        edit = replace_expression(link.place, (begin, end), ast.unparse(kept)) if before is not None else None
        after = _number(_replace(outer, inner, kept), around)
        if edit is None or after is None:
            continue
        for each in re.finditer(rf"\b{before}\b", text):
            value = read_value(f"{text[: each.start()]}{after}{text[each.end() :]}")
            values = {**call.scope.values, contract.about: value} if value is not None else {}
            if is_met(contract.demand, call.scope._replace(values=values)):
                edits[edit.code] = edit
    return next(iter(edits.values())) if len(edits) == 1 else None


def _arithmetic(tree: ast.AST) -> Iterator[tuple[ast.BinOp, ast.BinOp, ast.expr]]:
    """Yield (whole sum, part of it that adds or subtracts a constant, what is left of that part)."""
    inner = {id(c) for n in ast.walk(tree) if isinstance(n, ast.BinOp) for c in (n.left, n.right)}
    for outer in ast.walk(tree):
        if not isinstance(outer, ast.BinOp) or id(outer) in inner:
            continue
        for node in ast.walk(outer):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
                if isinstance(node.right, ast.Constant):
                    yield outer, node, node.left
                elif isinstance(node.left, ast.Constant) and isinstance(node.op, ast.Add):
                    yield outer, node, node.right


def _with_parentheses(code: str, node: ast.expr, kept: ast.expr) -> tuple[int, int]:
    """Return the place of a sum, with the parentheses that what is left of it does not need."""
    begin, end = node.col_offset, node.end_col_offset or 0
    around = code[: max(0, begin - 1)].rstrip()[-1:]
    bare = isinstance(kept, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    own = code[begin - 1 : begin] == "(" and code[end : end + 1] == ")" and not (around.isalnum() or around in "_)]")
    return (begin - 1, end + 1) if bare and own and begin else (begin, end)


def _replace(outer: ast.expr, inner: ast.expr, kept: ast.expr) -> ast.expr:
    if outer is inner:
        return kept
    if not isinstance(outer, ast.BinOp):
        return outer
    return ast.BinOp(_replace(outer.left, inner, kept), outer.op, _replace(outer.right, inner, kept))


def _number(node: ast.expr, around: Mapping[str, Value]) -> int | None:
    """Return the whole number that an expression gives, with the numbers of elements of known tensors."""
    whole = _Sizes(around).visit(ast.parse(ast.unparse(node), mode="eval")).body
    value = work_out(ast.unparse(whole), around)
    plain = value.plain if value is not None else None
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None


class _Sizes(ast.NodeTransformer):
    """Writes numbers for `x.numel()` and `x.size(0)`."""

    def __init__(self, around: Mapping[str, Value]) -> None:
        self._around = around

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if not isinstance(node.func, ast.Attribute) or node.keywords:
            return node
        value = self._around.get(ast.unparse(node.func.value))
        shape = value.shape if value is not None else None
        if shape is not None and node.func.attr == "numel" and not node.args:
            return ast.Constant(prod(shape))
        match node.args:
            case [ast.Constant(value=int() as at)] if shape is not None and node.func.attr == "size":
                return ast.Constant(shape[at]) if at in range(len(shape)) else node
        return node


def _result(node: ast.BinOp, world: ast.expr, size: int) -> int | float | None:
    left, right = (size if part is world else getattr(part, "value", None) for part in (node.left, node.right))
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    return apply_operator(node.op, left, right)


def _world(call: UserCall) -> Plain:
    try:
        return value_of("world_size", call.scope)
    except UnknownTermError:
        return None


def _literal(link: Link, given: int, wanted: int) -> Edit | None:
    """Return the edit of the literal that decided the number, if the line has it once."""
    if link.how not in {"literal", "option", "default", "assigned", "attribute", "returned", "passed"}:
        return None
    begin, end = link.place.mark
    if begin < end and link.place.code[begin:end] == str(given):  # an entry on a line of its own
        return replace_expression(link.place, link.place.mark, str(wanted))
    spans = find_spans(link.place.code, (str(given),))
    return replace_expression(link.place, spans[0], str(wanted)) if len(spans) == 1 else None
