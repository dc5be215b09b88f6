"""Edits of the user's line that make a broken contract hold: proven by its tree and by the numbers that meet."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from dtdebug_taxonomy.explanations import contract_repairs
from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.explanations.repair_search import Asked, Found, Repair, Way, common_edit, find_repairs, span_of
from dtdebug_taxonomy.inference.account_call import parse_line, read_call, work_out
from dtdebug_taxonomy.inference.contracts import Broken
from dtdebug_taxonomy.knowledge.contracts import load_contracts
from dtdebug_taxonomy.model.account import Account, Link, Place
from dtdebug_taxonomy.text.contract_call import UserCall, fill, show
from dtdebug_taxonomy.text.demands import (
    DemandError,
    Plain,
    UnknownTermError,
    apply_operator,
    is_met,
    names_in,
    sides,
    value_of,
)
from dtdebug_taxonomy.text.value_texts import Value

__all__ = ["UNTYPED", "Edit", "of_contract", "option_to_pass", "typed_option", "written_as_number"]

_OPTION = re.compile(r"['\"](--[\w-]{1,40})['\"]")
_NUMBER_TEXT = r"'-?\d{0,12}\.?\d{1,12}(?:e[+-]?\d{1,3})?'"
_TEXT = re.compile(_NUMBER_TEXT)
"""A number that is a text."""
_TEXTS = re.compile(rf"{_NUMBER_TEXT}|\[{_NUMBER_TEXT}(?:, {_NUMBER_TEXT}){{0,30}}\]")
"""One, or a list of them: an option with `nargs`."""
_ENTRY = re.compile(r"[\"']?[\w-]{1,80}[\"']?\s{0,8}[:=]\s{0,8}(?P<value>\d{1,12}),?(?:\s{1,40}#.{0,200})?")
_WORLD = frozenset({"world_size", "members"})


def of_contract(found: Broken, link: Link | None, at_once: Sequence[Broken] = ()) -> Edit | None:
    """Return the edit after which the demand is met: at the call, or where the number was decided.

    `at_once`: what the other ranks broke on the same line. An edit has to help them too.
    """
    contract, account, call = found
    place = account.place
    about = call.expressions.get(contract.about)
    alone = all(each.contract is contract for each in at_once)
    if alone and ((edit := contract_repairs.edit_of(found, at_once)) is not None or contract.instead):
        return edit
    given, wanted = _numbers(found)
    both = (given, wanted) if given is not None and wanted is not None else None
    if alone and both and place is not None and about is not None and (edit := _at_call(found, place, about[1], both)):
        return edit
    taken = contract_repairs.taken_for_ranks(found)
    if "prod(shape)" in contract.demand and (edit := contract_repairs.by_inferred_dimension(found)) is not None:
        return edit
    if alone and taken is not None and (edit := contract_repairs.by_number_of_ranks(found, taken)) is not None:
        return edit
    if (edit := common_edit([_repairs_of(each) for each in at_once or (found,)])) is not None or not alone:
        return edit
    size = call.scope.values.get("members") or call.scope.values.get("world_size")
    if taken is not None and size is not None and isinstance(size.plain, int):
        edit = _literal(taken, int(taken.value.text), size.plain)
        if edit is not None:
            return edit
    if given is not None and wanted is not None and (edit := contract_repairs.by_other_side(found, given)) is not None:
        return edit
    if (edit := _undivided(found, link)) is not None:
        return edit
    saved = of_saved_call(account)
    return saved[0] if saved is not None else None


def _undivided(found: Broken, link: Link | None) -> Edit | None:
    """Return the line that made a number too small without its division, if the demand is met by the whole."""
    left, operator, right = sides(found.contract.demand)
    if link is None or operator not in {"Lt", "LtE"}:
        return None
    begin, end = span_of(link)
    known = {each.value.name: each.value.text for each in found.account.links}
    with suppress(UnknownTermError, DemandError):
        least, most = value_of(left, found.call.scope), value_of(right, found.call.scope)
        match parse_line(link.place.code[begin:end]):
            case ast.Module(body=[ast.Expr(value=ast.BinOp(left=whole, op=ast.FloorDiv(), right=by))]):
                by_ranks = ast.unparse(by).endswith("get_world_size()")
                divisor = str(_world(found.call)) if by_ranks else known.get(ast.unparse(by), ast.unparse(by))
                if not (isinstance(least, int) and isinstance(most, int) and divisor.isdigit()):
                    return None
                if link.value.text == str(most) and least < most * int(divisor) + (operator == "LtE"):
                    words = link.place.code[begin + whole.col_offset : begin + (whole.end_col_offset or 0)]
                    edit = replace_expression(link.place, (begin, end), words)
                    return edit._replace(meant=False) if edit is not None else None
    return None


def _repairs_of(found: Broken) -> Found:
    """Return the edits after which a call breaks no contract that its values are known to break now."""
    contract, account, call = found
    asked = {name: Asked(*call.expressions[name]) for name in call.expressions if name != "self"}
    place = account.place
    if place is None or any(place.code[slice(*a.span)] != a.words for a in asked.values()):
        return {}

    def meets(values: Mapping[str, Value]) -> bool:
        scope = call.scope._replace(values={**call.scope.values, **values})
        others = load_contracts().of(account.refusal.api if account.refusal is not None else "")
        broken = (
            c
            for c in others
            if c.demand and (not c.when or is_met(c.when, scope) is True) and is_met(c.demand, scope) is False
        )
        off = bool(contract.when) and is_met(contract.when, scope) is False
        return (off or is_met(contract.demand, scope) is True) and not any(broken)

    edits = dict(find_repairs(Way(account, asked), meets, _wanted_numbers(found), contract.about))
    defaults = dict(p.partition("=")[::2] for p in contract.parameters if "=" in p)
    for name in (asked.keys() & defaults.keys()) - names_in(contract.when or "None") - {contract.about}:
        value = work_out(defaults[name], {})
        edit = contract_repairs.left_out(name, place) if value is not None and meets({name: value}) else None
        if edit is not None:
            edits[place.file, place.line, edit.code] = Repair((0, 0), edit)
    return edits


def _wanted_numbers(found: Broken) -> Iterator[int] | None:
    """Return the numbers that the demand and the job have; None if the demand is met by a range of numbers."""
    demand, scope = found.contract.demand, found.call.scope
    if sides(demand)[1] in {"Lt", "LtE", "Gt", "GtE"}:
        return None
    facts = {*_WORLD, "rank", "backend"}
    if names_in(demand) - facts - (found.call.expressions.keys() - {"self"}):
        # what the object was made with can be the wrong side as well
        return iter(())
    values = [scope.values.get(name) for name in ("members", "world_size", "rank", *names_in(demand))]
    plain = [v.plain for v in values if v is not None]
    for side in sides(demand)[::2]:
        with suppress(UnknownTermError, DemandError):
            plain.append(value_of(side, scope) if side else None)  # type: ignore[arg-type]
    shapes = (n for v in values if v is not None and v.shape for n in v.shape)
    return iter({n for n in (0, *plain, *shapes) if isinstance(n, int) and not isinstance(n, bool)})


def of_test(account: Account, test: str, way: bool) -> Edit | None:
    """Return the edit after which a test of the library goes the other way, if it compares arguments of the call."""
    call, place = read_call(account), account.place
    at = account.refusal.place if account.refusal is not None else None
    if place is None or at is None or at.function not in {call.name, "__init__"}:
        return None
    names = names_in(test)
    asked = {n: Asked(*call.expressions[n]) for n in names & call.expressions.keys()}
    known = [v.plain for n in names if (v := call.scope.values.get(n)) is not None]
    ordered = any(each in test for each in "<>")
    numbers = None if ordered else [n for n in known if isinstance(n, int) and not isinstance(n, bool)]

    def meets(values: Mapping[str, Value]) -> bool:
        return is_met(test, call.scope._replace(values={**call.scope.values, **values})) is (not way)

    return common_edit([find_repairs(Way(account, asked), meets, numbers)])


def of_number(account: Account, node: ast.expr, meets: Callable[[int], bool]) -> Edit | None:
    """Return the edit after which a number on the line that raised is one that the line can use."""
    span = (node.col_offset, node.end_col_offset or 0)

    def fits(values: Mapping[str, Value]) -> bool:
        plain = values["number"].plain if "number" in values else None
        return isinstance(plain, int) and meets(plain)

    way = Way(account, {"number": Asked(ast.unparse(node), span)})
    return common_edit([find_repairs(way, fits, None, "number")])


def of_saved_call(account: Account) -> tuple[Edit, Link] | None:
    """Return the edit of a call of the program's own as another one was made whose result was saved, and that one.

    Only if one constant argument is the whole difference.
    """
    saved, live = list[Link](), list[Link]()
    depth = -1  # of the line that saved
    for link in account.links:
        if depth < 0 or link.depth <= depth:
            depth = link.depth if link.how == "file" else -1
        (saved if depth >= 0 else live).append(link)
    own = {link.value.name.partition("(")[0] for link in account.links if link.how == "returned"}
    found = {
        (edit.place.line, edit.code): (edit, other)
        for link in live
        for other in saved
        if link.how in {"called", "assigned"} and other.how in {"called", "assigned"} and link.place != other.place
        and (edit := _as_called(link, other, own)) is not None
    }  # fmt: skip
    return next(iter(found.values())) if len(found) == 1 else None


def _as_called(link: Link, other: Link, own: AbstractSet[str]) -> Edit | None:
    one, two = (_only_call(each) for each in (link, other))
    if one is None or two is None or ast.unparse(one.func) != ast.unparse(two.func) or not link.place.code.isascii():
        return None
    if ast.unparse(one.func) not in own or len(one.args) != len(two.args):
        return None
    given, wanted = ({k.arg or "**": k.value for k in each.keywords} for each in (one, two))
    pairs = [*zip(one.args, two.args, strict=True), *((given[k], wanted[k]) for k in given.keys() & wanted.keys())]
    apart = [(a, b) for a, b in pairs if ast.unparse(a) != ast.unparse(b)]
    more, less = wanted.keys() - given.keys(), given.keys() - wanted.keys()
    if len(apart) + len(more) + len(less) != 1:
        return None
    for name in more | less:
        if not isinstance((wanted | given)[name], ast.Constant):
            return None
        if name in less:
            return contract_repairs.left_out(name, link.place)
        return contract_repairs.add_argument(name, ast.unparse(wanted[name]), one, link.place)
    ((before, after),) = apart
    if not isinstance(before, ast.Constant) or not isinstance(after, ast.Constant):
        return None
    return replace_expression(link.place, (before.col_offset, before.end_col_offset or 0), ast.unparse(after))


def _only_call(link: Link) -> ast.Call | None:
    match parse_line(link.place.code):
        case ast.Module(body=[ast.Assign(value=ast.Call() as call)]):
            return call
    return None


def typed_option(link: Link | None) -> Edit | None:
    """Return the edit that gives an option a `type`, where a number given on the command line stayed text."""
    text = _TEXTS.fullmatch(link.value.text) if link is not None and link.how == "option" else None
    tree = parse_line(link.place.code) if link is not None and text is not None else None
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree is not None else []
    call = next((n for n in calls if isinstance(n.func, ast.Attribute) and n.func.attr == "add_argument"), None)
    if link is None or text is None or call is None or not call.args or not link.place.code.isascii():
        return None
    if any(k.arg in {"type", "action", None} for k in call.keywords):
        return None
    at, kind = call.args[-1].end_col_offset or 0, "float" if re.search(r"[.e]", text[0]) else "int"
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
    if edit := _correct_count(place, found.call, given, wanted):
        return edit
    if len(inside) != 1:
        return None
    right = sides(found.contract.demand)[2]
    written = str(wanted)
    if found.contract.write and right in _WORLD and found.call.module.isidentifier():
        written = fill(found.contract.write, found.call, {"module": found.call.module})
    return replace_expression(place, inside[0], written)


def _correct_count(place: Place, call: UserCall, given: int, wanted: int) -> Edit | None:
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
    if link.how == "file":
        return _entry_of_file(link, given, wanted)
    if link.how not in {"literal", "option", "default", "assigned", "attribute", "returned", "passed"}:
        return None
    begin, end = link.place.mark
    if begin < end and link.place.code[begin:end] == str(given):  # an entry on a line of its own
        return replace_expression(link.place, link.place.mark, str(wanted))
    spans = find_spans(link.place.code, (str(given),))
    return replace_expression(link.place, spans[0], str(wanted)) if len(spans) == 1 else None


def _entry_of_file(link: Link, given: int, wanted: int) -> Edit | None:
    """Return the edit of an entry of a configuration file on a line of its own: `shards: 4`, `"shards": 4,`."""
    found = _ENTRY.fullmatch(link.place.code)
    if found is None or found["value"] != str(given):
        return None
    begin, end = found.span("value")
    return Edit(link.place, f"{link.place.code[:begin]}{wanted}{link.place.code[end:]}")
