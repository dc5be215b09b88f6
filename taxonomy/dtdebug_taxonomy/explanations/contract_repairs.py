"""Edits that a contract itself gives: its ways to write the call, and the other side of its comparison."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence

from dtdebug_taxonomy.explanations.account_words import Edit, replace_expression
from dtdebug_taxonomy.inference.account_call import chains_of, parse_line, work_out
from dtdebug_taxonomy.inference.contracts import Broken
from dtdebug_taxonomy.knowledge.contracts import Repair
from dtdebug_taxonomy.model.account import Account, Link, Place
from dtdebug_taxonomy.text.contract_call import UnknownSlotError, UserCall, fill
from dtdebug_taxonomy.text.demands import is_met, names_in, sides
from dtdebug_taxonomy.text.value_texts import Value, read_value

_DIST, _MODULE, _TORCH = "{dist}", "{module}", "{torch}"
_BARE = re.compile(r"\{(\w{1,40})!\}")
_VALUE = re.compile(r"\{=(\w{1,40})\}")
_NAMED = re.compile(r"[A-Za-z_][\w.]{0,40}")
_WORLD = frozenset({"world_size", "members"})
_METHODS: Mapping[str, str] = {"numel": "{}.numel()", "len": "len({})", "sum": "sum({})"}
"""Terms of a demand as a program writes them."""


def edit_of(found: Broken, at_once: Sequence[Broken] = ()) -> Edit | None:
    """Return the first of the contract's ways to write the call that fits this one.

    `at_once`: what all ranks broke on the same line.
    """
    contract, account, call = found
    instead = (Repair(at=contract.about, write=contract.instead),) if contract.instead else ()
    for repair in (*instead, *contract.repair):
        if repair.when and is_met(repair.when, call.scope) is not True:
            continue
        if repair.alike and len(values_by_rank(repair.alike, at_once)) > 1:
            continue
        if account.place is not None and (edit := _write(repair, account, call, account.place)) is not None:
            return edit
    return None


def parted_argument(found: Broken, at_once: Sequence[Broken]) -> str:
    """Return the parameter that has to be equal on all ranks which failed, and is not; empty if there is none."""
    asked = (repair.alike for repair in found.contract.repair if repair.alike)
    return next((name for name in asked if len(values_by_rank(name, at_once)) > 1), "")


def values_by_rank(name: str, broken: Sequence[Broken]) -> dict[str, list[int]]:
    """Return value of an argument -> ranks that have it."""
    rows: dict[str, list[int]] = {}
    for each in broken:
        value = each.call.scope.values.get(name)
        if value is not None and each.account.rank is not None:
            rows.setdefault(str(value.plain), []).append(each.account.rank)
    return rows


def _write(repair: Repair, account: Account, call: UserCall, place: Place) -> Edit | None:
    dist, given = account.modules[1], call.expressions.get(repair.at) if not repair.of else None
    if (_DIST in repair.write and not dist) or (_MODULE in repair.write and not call.module.isidentifier()):
        return None
    if any(name not in call.expressions for name in _BARE.findall(repair.write)):
        return None  # a name of the library's is none of the program's
    torch = account.modules[0]
    if _TORCH in repair.write and not torch:
        return None
    try:
        write = _VALUE.sub(lambda slot: f"{{{slot[1]}!}}" if _is_named(call, slot[1]) else slot[0], repair.write)
        text = fill(write, call, {"module": call.module, "dist": dist, "torch": torch})
    except UnknownSlotError:
        return None
    if repair.of:
        made = _making_call(repair.of, account, call)
        return _give(repair.at, text, *made) if made is not None else None
    if not repair.write:
        return left_out(repair.at, place) if given is not None else None
    if given is not None:
        if "get_world_size" in repair.write and isinstance(_expression(given[0]), ast.Attribute):
            return None  # what an object of the program counts as its ranks are not all of the job
        return replace_expression(place, given[1], text)
    rows = [n for n in _calls(place) if ast.unparse(n.func).rpartition(".")[2] == call.name]
    return add_argument(repair.at, text, rows[0], place) if len(rows) == 1 else None


def _expression(words: str) -> ast.expr | None:
    match parse_line(words):
        case ast.Module(body=[ast.Expr(value=value)]):
            return value
    return None


def _is_named(call: UserCall, parameter: str) -> bool:
    """True if the program gives a parameter by a name: another run may have another value there."""
    return _NAMED.fullmatch(call.expressions.get(parameter, ("",))[0]) is not None


def _give(name: str, text: str, call: ast.Call, place: Place) -> Edit | None:
    """Return the line with an argument of a call replaced, or added."""
    given = next((k.value for k in call.keywords if k.arg == name), None)
    if given is None:
        return add_argument(name, text, call, place)
    return replace_expression(place, (given.col_offset, given.end_col_offset or 0), text)


def _making_call(parameter: str, account: Account, call: UserCall) -> tuple[ast.Call, Place] | None:
    """Return the call that made the object of a parameter, if its line assigns what the call returns."""
    words = call.expressions.get(parameter)
    chain = next(iter(chains_of(account, words[0])), ()) if words is not None else ()
    for link in chain:
        match parse_line(link.place.code):
            case ast.Module(body=[ast.Assign(value=ast.Call() as made)]) if link.place.code.isascii():
                return made, link.place
    return None


def _calls(place: Place) -> list[ast.Call]:
    tree = parse_line(place.code)
    if tree is None or not place.code.isascii() or place.code.startswith("elif"):
        return []
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call)]


def left_out(name: str, place: Place) -> Edit | None:
    """Return the line without one argument of a call that is passed by its name."""
    rows = [(call, k) for call in _calls(place) for k in call.keywords if k.arg == name]
    if len(rows) != 1:
        return None
    call, left = rows[0]
    parts = sorted([*call.args, *(k.value for k in call.keywords)], key=lambda n: (n.lineno, n.col_offset))
    at, code = parts.index(left.value), place.code
    if at:
        span = (parts[at - 1].end_col_offset or 0, left.value.end_col_offset or 0)
    else:
        following = call.keywords[1].col_offset if len(parts) > 1 else (call.end_col_offset or 0) - 1
        span = (left.col_offset, following)
    changed = f"{code[: span[0]]}{code[span[1] :]}"
    return Edit(place, changed) if parse_line(changed) is not None else None


def add_argument(name: str, text: str, call: ast.Call, place: Place) -> Edit | None:
    """Return the line with one more argument at the end of a call."""
    if any(k.arg in {None, name} for k in call.keywords):
        return None
    end, code = (call.end_col_offset or 0) - 1, place.code
    before = code[:end].rstrip().removesuffix(",")
    comma = ", " if call.args or call.keywords else ""
    changed = f"{before}{comma}{name}={text}{code[end:]}"
    return Edit(place, changed) if parse_line(changed) is not None else None


def taken_for_ranks(found: Broken) -> Link | None:
    """Return the literal, option or default that the values were made with as the number of ranks.

    With it for the size of the group, the demand would hold: `flat.numel() // shards` with `shards=4` on two ranks.
    """
    demand, scope = found.contract.demand, found.call.scope
    asked = _WORLD & names_in(demand)
    ends: dict[tuple[str, int], Link] = {}
    for link in found.account.links if asked else ():
        text = link.value.text
        if link.how not in {"literal", "option", "default", "file"} or not text.isdigit() or int(text) < 2:
            continue
        number = Value(kind="number", name="int", plain=int(text))
        if any((known := scope.values.get(name)) is None or known.plain == number.plain for name in asked):
            continue
        if is_met(demand, scope._replace(values={**scope.values, **dict.fromkeys(asked, number)})):
            ends[link.place.file, link.place.line] = link
    return next(iter(ends.values())) if len(ends) == 1 else None


def by_number_of_ranks(found: Broken, taken: Link) -> Edit | None:
    """Return the edit of a product or quotient that asks for the number of ranks instead of a setting taken for it.

    The setting may mean something else in other places, and this holds for every number of ranks.
    """
    account, dist = found.account, found.account.modules[1]
    if taken.how != "option" or not dist or account.place is None or "group" in found.call.expressions:
        return None
    below = taken
    for link in reversed(account.links[: account.links.index(taken)]):
        if link.depth >= below.depth:
            continue
        tree = parse_line(link.place.code) if link.place.file == account.place.file else None
        sums = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp)] if tree is not None else []
        sides = [side for n in sums if isinstance(n.op, ast.Mult | ast.FloorDiv) for side in (n.left, n.right)]
        sides = [side for side in sides if ast.unparse(side) == below.value.name]
        if len(sides) == 1 and link.place.code.isascii():
            span = (sides[0].col_offset, sides[0].end_col_offset or 0)
            return replace_expression(link.place, span, f"{dist}.get_world_size()")
        below = link
    return None


def by_inferred_dimension(found: Broken) -> Edit | None:
    """Return the view with -1 for its first own dimension, of a tensor of which each rank has an equal part.

    A layer that is split over the ranks gives each some of the heads, not some of each head.
    """
    call, place = found.call, found.account.place
    one, shape, world = (call.scope.values.get(name) for name in ("self", "shape", "world_size"))
    words, (begin, _) = call.expressions.get("shape", ("", (0, 0)))
    match parse_line(f"{words},"):
        case ast.Module(body=[ast.Expr(value=ast.Tuple(elts=parts))]):
            sizes = [item.plain for item in shape.items] if shape is not None else []
        case _:
            return None
    ranks = world.plain if world is not None else None
    if one is None or one.shape is None or not isinstance(ranks, int) or place is None or len(sizes) != len(parts):
        return None
    numbers = [n for n in sizes if isinstance(n, int)]
    whole, own = math.prod(numbers), math.prod(one.shape)
    if len(numbers) != len(sizes) or min(numbers) < 1 or ranks < 2 or whole != own * ranks:
        return None
    at = next((n for n, size in enumerate(numbers) if one.shape[n : n + 1] != (size,)), 0)
    span = (begin + parts[at].col_offset, begin + (parts[at].end_col_offset or 0))
    return replace_expression(place, span, "-1") if own % (whole // numbers[at]) == 0 else None


def by_other_side(found: Broken, given: int) -> Edit | None:
    """Return the edit that makes a size from what it is compared with: `torch.empty(sum(counts))` for `len(tokens)`.

    At the line that made the value, if it stands in the function of the call and below what the other side names.
    """
    contract, account, call = found
    words = call.expressions.get(contract.about)
    other = _in_program(sides(contract.demand)[2], account, call)
    if words is None or not other or account.place is None:
        return None
    chain = next(iter(chains_of(account, words[0])), ())
    made = chain[0] if chain and chain[0].value.name == words[0] else None
    if made is None or made.how not in {"assigned", "called"} or not _is_before(made.place, account.place):
        return None
    if not all(_is_bound(name, account, made) for name in _roots(other)):
        return None
    around = _values(account)
    tree = parse_line(made.place.code)
    sized = [n for n in ast.walk(tree) if isinstance(n, ast.expr) and _gives(n, given, around)] if tree else []
    if len(sized) != 1 or not made.place.code.isascii():
        return None
    return replace_expression(made.place, (sized[0].col_offset, sized[0].end_col_offset or 0), other)


def _gives(node: ast.expr, number: int, around: Mapping[str, Value]) -> bool:
    value = work_out(ast.unparse(node), around)
    return value is not None and value.kind == "number" and value.name == "int" and value.plain == number


def _values(account: Account) -> dict[str, Value]:
    known = [*(link.value for link in account.links), *(account.refusal.arguments if account.refusal else ())]
    return {each.name: value for each in reversed(known) if (value := read_value(each.text)) is not None}


def _is_before(one: Place, other: Place) -> bool:
    return (one.file, one.function) == (other.file, other.function) and one.line < other.line


def _is_bound(name: str, account: Account, made: Link) -> bool:
    """True if a name got its value above a line, in the same function."""
    heads = [link for link in account.links if link.value.name == name and link.depth == 0]
    return bool(heads) and all(_is_before(link.place, made.place) for link in heads)


def _roots(words: str) -> frozenset[str]:
    nodes = list(ast.walk(parse_line(words) or ast.Module([], [])))
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    return frozenset(n.id for n in nodes if isinstance(n, ast.Name) and id(n) not in called)


def _in_program(term: str, account: Account, call: UserCall) -> str:
    """Return a term of a demand as the user's program writes it; empty if it has no such form."""
    tree = parse_line(term)
    match tree:
        case ast.Module(body=[ast.Expr(value=value)]):
            return _as_written(value, account, call)
    return ""


def _as_written(node: ast.expr, account: Account, call: UserCall) -> str:
    match node:
        case ast.Name(id=name) if name in _WORLD and name not in call.expressions:
            return f"{account.modules[1]}.get_world_size()" if account.modules[1] else ""
        case ast.Name(id=name):
            return call.expressions[name][0] if name in call.expressions else ""
        case ast.Call(func=ast.Name(id=name), args=[part]) if name in _METHODS:
            inner = _as_written(part, account, call)
            return _METHODS[name].format(inner) if inner else ""
        case ast.Attribute(value=owner, attr="shape"):
            inner = _as_written(owner, account, call)
            return f"{inner}.shape" if inner else ""
        case ast.Subscript(value=owner, slice=ast.Constant(value=int() as at)):
            inner = _as_written(owner, account, call)
            return f"{inner}[{at}]" if inner else ""
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            both = (_as_written(left, account, call), _as_written(right, account, call))
            return " * ".join(both) if all(both) else ""
    return ""
