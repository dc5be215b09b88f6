"""Search for the edit of one expression after which a demand is met, among the lines of an account's way back.

Each candidate is worked out with the values that the rank had, from the edited line to the refused argument. The
cheapest that fits is the repair; if two of equal cost fit, none is known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from dtdebug_taxonomy.explanations.account_words import Edit, find_spans, replace_expression
from dtdebug_taxonomy.inference.account_call import parse_line
from dtdebug_taxonomy.inference.worked_out import work_out_node
from dtdebug_taxonomy.model.account import Account, Link, Place
from dtdebug_taxonomy.text.value_texts import Value, read_value

Values = Mapping[str, Value]
Meets = Callable[[Values], bool]
"""True if the demand is met with these values of the arguments."""

_LEFT_OUT, _OTHER_NAME, _NUMBER, _ROUNDED, _BY_RANKS, _OF_TENSOR, _AT_LEAST = range(1, 8)
"""Costs: a constant of a sum is left out, another name stands there, a literal is another number, a division is rounded
up, a tensor is made with room for each rank, the size of a tensor stands for a number, a 0 becomes a 1."""
_MAKERS = frozenset({"empty", "zeros", "ones", "new_empty", "new_zeros", "new_ones"})
_CHANGED = frozenset({"literal", "option", "default", "attribute", "assigned", "called", "passed", "returned"})
_WORD = re.compile(r"[a-z]{2,}")
_OWN = Link | None
"""A link, or None for the line that raised."""


class Repair(NamedTuple):
    """An edit that makes the demand hold."""

    cost: tuple[int, int]
    """The less the better; the second is 1 if it changes another argument than the one that is at fault."""
    edit: Edit


class Asked(NamedTuple):
    """An argument of the line that raised."""

    words: str
    span: tuple[int, int]


class Way:
    """The lines of an account with the values that the names on each had."""

    def __init__(self, account: Account, asked: Mapping[str, Asked]) -> None:
        self.account = account
        self.asked = asked
        """Arguments of the line that raised by their names."""
        self._children: dict[int, list[Link]] = {}
        above: list[Link] = []
        for link in account.links:
            while above and above[-1].depth >= link.depth:
                above.pop()
            self._children.setdefault(id(above[-1]) if above else 0, []).append(link)
            above.append(link)

    @cached_property
    def facts(self) -> dict[str, Value]:
        """Facts of the job by the names that `work_out_node` asks for."""
        names = {"world size": "__world_size__", "rank": "__rank__"}
        rows = ((names.get(f.name, ""), read_value(f.text)) for f in self.account.facts)
        return {name: value for name, value in rows if name and value is not None}

    def children(self, at: _OWN) -> list[Link]:
        """Return the links of the names on a line."""
        return self._children.get(id(at) if at is not None else 0, [])

    def others(self, at: _OWN) -> Iterator[Link]:
        """Yield names that could stand on a line instead: those of the same function, bound above it."""
        own, place = self.account.place, at.place if at is not None else self.account.place
        if own is not None and place is not None and (place.file, place.function) == (own.file, own.function):
            yield from (link for link in self.account.beside if link.place.line < place.line)

    def around(self, at: _OWN, changed: Mapping[int, Value]) -> dict[str, Value]:
        """Return the values of the names on a line, with those of changed lines worked out again."""
        found = dict(self.facts)
        refusal = self.account.refusal
        written = refusal.values if at is None and refusal is not None and refusal.place is None else ()
        known = (*written, *(link.value for link in self.others(at)))
        found.update((v.name, value) for v in known if (value := read_value(v.text)) is not None)
        for link in reversed(self.children(at)):
            value = self.value(link, changed)
            if value is not None:
                found[link.value.name] = value
            else:
                found.pop(link.value.name, None)
        return found

    def value(self, link: Link, changed: Mapping[int, Value]) -> Value | None:
        """Return the value of a link: as recorded, or as its line gives it after a change further back."""
        if id(link) in changed:
            return changed[id(link)]
        if not self._has_changed(link, changed):
            return read_value(link.value.text) if link.value.text else None
        begin, end = span_of(link)
        node = _parse(link.place.code[begin:end])
        return work_out_node(node, self.around(link, changed)) if node is not None else None

    def _has_changed(self, link: Link, changed: Mapping[int, Value]) -> bool:
        return any(id(each) in changed or self._has_changed(each, changed) for each in self.children(link))

    def arguments(self, changed: Mapping[int, Value]) -> dict[str, Value] | None:
        """Return the arguments that depend on what changed; None if one of them is not known then."""
        around, found = self.around(None, changed), {}
        before = self.around(None, {})
        for name, (words, _) in self.asked.items():
            node = _parse(words)
            named = {ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.expr)} if node is not None else set()
            if node is None or not any(around.get(n) != before.get(n) for n in named):
                continue
            value = work_out_node(node, around)
            if value is None:
                return None
            found[name] = value
        return found


Found = Mapping[tuple[str, int, str], Repair]
"""(File, line, edited line) -> repair."""


def find_repairs(way: Way, meets: Meets, wanted: Iterable[int] | None, about: str = "") -> Found:
    """Return the edits of the program that meet the demand.

    `wanted`: numbers that a literal may have to be; None if the demand leaves more than one value, so that another name
    or number which meets it shows nothing. `about`: the argument that is at fault.
    """
    found: dict[tuple[str, int, str], Repair] = {}
    for repair in _repairs(way, meets, None if wanted is None else sorted({*wanted}), about):
        place = repair.edit.place
        found.setdefault((place.file, place.line, repair.edit.code), repair)
    return found


def common_edit(of_ranks: Sequence[Found]) -> Edit | None:
    """Return the cheapest edit that helps every rank which failed; None if none does, or several of one cost do."""
    common = {key: r for key, r in of_ranks[0].items() if all(key in each for each in of_ranks)} if of_ranks else {}
    least = min((r.cost for r in common.values()), default=(0, 0))
    cheapest = [r.edit for r in common.values() if r.cost == least]
    return cheapest[0] if len(cheapest) == 1 else None


def _repairs(way: Way, meets: Meets, numbers: Sequence[int] | None, about: str) -> Iterator[Repair]:
    place = way.account.place
    for name, asked in way.asked.items():
        found = _candidates(way, None, place, asked.span, numbers) if place is not None else ()
        yield from (Repair((cost, int(name != about)), edit) for cost, edit, value in found if meets({name: value}))
    yield from _interchanged(way, meets) if place is not None and numbers is not None else ()
    for link in way.account.links:
        if link.how in _CHANGED:
            for cost, edit, value in _candidates(way, link, link.place, span_of(link), _numbers_of(way, link, numbers)):
                given = way.arguments({id(link): value})
                if given and meets(given):
                    yield Repair((cost, int(about not in given)), edit)


def _interchanged(way: Way, meets: Meets) -> Iterator[Repair]:
    """Yield the call with two arguments of one kind in each other's place."""
    place, known = way.account.place, way.around(None, {})
    for (one, first), (other, second) in combinations(way.asked.items(), 2):
        values = known.get(first.words), known.get(second.words)
        if place is None or not place.code.isascii() or values[0] is None or values[1] is None:
            continue
        (a, b), (c, d) = sorted((first.span, second.span))
        fit = values[0] != values[1] and _could_be(values[0], values[1]) and b <= c
        # of two tensors that are alike, another size is as likely to be wrong as the order
        fit = fit and (values[0].kind != "tensor" or values[0].dtype != values[1].dtype)
        if fit and meets({one: values[1], other: values[0]}):
            code = place.code
            edit = replace_expression(place, (a, d), f"{code[c:d]}{code[b:c]}{code[a:b]}")
            if edit is not None:
                yield Repair((_OTHER_NAME, 0), edit)


def _numbers_of(way: Way, link: Link, numbers: Sequence[int] | None) -> Sequence[int] | None:
    """Return the numbers that a literal of a line may become: a setting that all read only the number of ranks.

    What one call asks for, such as the rows of a last batch, is no value of an option or of a constant of the module.
    """
    if numbers is None or (link.place.function and link.how not in {"option", "default"}):
        return numbers
    world = way.facts.get("__world_size__")
    return [n for n in numbers if world is not None and n == world.plain]


def _candidates(
    way: Way, at: _OWN, place: Place, span: tuple[int, int], numbers: Sequence[int] | None
) -> Iterator[tuple[int, Edit, Value]]:
    """Yield edits of one expression, with the value that it has then; only if what it had can be worked out."""
    begin, end = span
    node = _parse(place.code[begin:end])
    around = way.around(at, {})
    before = work_out_node(node, around) if node is not None else None
    recorded = way.value(at, {}) if at is not None else None
    before = before or recorded
    if node is None or before is None or not place.code.isascii() or (recorded and not _is_alike(before, recorded)):
        return
    others = {link.value.name: value for link in way.others(at) if (value := read_value(link.value.text)) is not None}
    for asked in way.asked.values() if at is None else ():
        others.pop(asked.words, None)  # it has its own place in this call
    changes = list(_changes(node, place.code[begin:end], (around, others), before, numbers))
    if numbers is not None and way.account.place is not None and place.file == way.account.place.file:
        changes += _by_ranks(node, place.code[begin:end], way.account.modules[1])
    for cost, part, text in changes:
        first, last = (begin + part.col_offset, begin + (part.end_col_offset or 0))
        if isinstance(part, ast.BinOp) and not isinstance(_parse(text), ast.BinOp):
            first, last = _with_parentheses(place.code, first, last)
        edit = replace_expression(place, (first, last), text)
        changed = _parse(edit.code[begin : end + len(edit.code) - len(place.code)]) if edit is not None else None
        value = work_out_node(changed, {**others, **around}) if changed is not None else None
        value = value or (read_value("1") if cost == _AT_LEAST else None)
        if edit is not None and value is not None and value != before:
            yield cost, edit._replace(meant=cost != _AT_LEAST), value


def _changes(
    node: ast.expr, words: str, named: tuple[Values, Values], before: Value, numbers: Sequence[int] | None
) -> Iterator[tuple[int, ast.expr, str]]:
    """Yield (cost, part of an expression, what could stand there).

    `named`: values of the names in the expression, and of those that could stand there.
    """
    around, others = named
    for part in ast.walk(node):
        match part:
            case ast.BinOp(left=kept, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=ast.Constant()):
                yield _LEFT_OUT, part, words[kept.col_offset : kept.end_col_offset]
            case ast.BinOp(left=ast.Constant(), op=ast.Add() | ast.Mult(), right=kept):
                yield _LEFT_OUT, part, words[kept.col_offset : kept.end_col_offset]
            case ast.BinOp(left=ast.Name() | ast.Attribute() | ast.Call(), op=ast.FloorDiv() | ast.Mod() as operator):
                whole = words[part.col_offset : part.end_col_offset]
                yield _ROUNDED, part, f"-(-{whole})" if isinstance(operator, ast.FloorDiv) else f"-{whole}"
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                yield from ((_NUMBER, part, str(n)) for n in numbers or () if n != number)
            case ast.Name() | ast.Attribute() if numbers is not None:
                known = around.get(ast.unparse(part))
                for name, other in others.items() if known is not None else ():
                    alike = known is not None and _could_be(other, known) and other != known
                    if alike and (other.plain is None or _shares_word(name, ast.unparse(part))):
                        yield _OTHER_NAME, part, name
                    elif known is not None and type(known.plain) is int and other.kind == "tensor" and other.shape:
                        yield _OF_TENSOR, part, f"{name}.size(0)"
    if before.plain == 0 and _is_rounded(node):
        yield _AT_LEAST, node, f"max(1, {words})"


def _is_rounded(node: ast.expr) -> bool:
    """True for a number of which a part was cut off."""
    match node:
        case ast.Call(func=ast.Name(id="int" | "round"), args=[ast.BinOp()], keywords=[]):
            return True
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)


def _could_be(other: Value, known: Value) -> bool:
    """True if a value is of the kind of another, and what it holds is of the kind of what that holds."""
    kinds = [{item.kind for item in each.items} for each in (other, known)]
    return other.kind == known.kind and (kinds[0] == kinds[1] or not all(kinds))


def _by_ranks(node: ast.expr, words: str, dist: str) -> Iterator[tuple[int, ast.expr, str]]:
    """Yield the number of ranks for that of the items of a list, or as a factor of the first size of a tensor."""
    match node:
        case ast.ListComp(generators=[ast.comprehension(iter=ast.Call(func=ast.Name(id="range"), args=[count]))]) if (
            dist
        ):
            yield _BY_RANKS, count, f"{dist}.get_world_size()"
    for call in ast.walk(node) if dist else ():
        if isinstance(call, ast.Call) and call.args and ast.unparse(call.func).rpartition(".")[2] in _MAKERS:
            size = call.args[0]
            size = size.elts[0] if isinstance(size, ast.Tuple | ast.List) and size.elts else size
            own = words[size.col_offset : size.end_col_offset]
            own = f"({own})" if isinstance(size, ast.BinOp) and isinstance(size.op, ast.Add | ast.Sub) else own
            yield from ((_BY_RANKS, size, f"{own} {sign} {dist}.get_world_size()") for sign in ("*", "//"))


def _shares_word(one: str, other: str) -> bool:
    """True if two names have a word in common: small numbers are equal by chance."""
    return bool({*_WORD.findall(one.lower())} & {*_WORD.findall(other.lower())})


def _is_alike(one: Value, other: Value) -> bool:
    """True if a value that was worked out can be the one that was recorded."""
    pairs = ((one.plain, other.plain), (one.shape, other.shape), (one.length, other.length))
    return all(None in pair or pair[0] == pair[1] for pair in pairs)


def _with_parentheses(code: str, begin: int, end: int) -> tuple[int, int]:
    """Return the place of a sum with its own parentheses, which what is left of it does not need."""
    before = code[: max(0, begin - 1)].rstrip()[-1:]
    own = code[begin - 1 : begin] == "(" and code[end : end + 1] == ")" and not (before.isalnum() or before in "_)]")
    return (begin - 1, end + 1) if own and begin else (begin, end)


def span_of(link: Link) -> tuple[int, int]:
    """Return the place of the expression of a link on its line: what is assigned, passed, returned or the default."""
    code, mark = link.place.code, link.place.mark
    if mark[0] < mark[1] and link.how != "attribute":
        node = _parse(code[mark[0] : mark[1]])
        if node is not None and not (link.how == "option" and isinstance(node, ast.Call)):
            return mark
    found: ast.expr | None = None
    match parse_line(code):
        case ast.Module(body=[ast.Assign(targets=[ast.Name() | ast.Attribute()], value=value)]):
            found = value
        case ast.Module(body=[ast.AnnAssign(value=ast.expr() as value)]):
            found = value
        case ast.Module(body=[ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values))]) if len(
            names
        ) == len(values):
            found = next((v for n, v in zip(names, values, strict=True) if ast.unparse(n) == link.value.name), None)
        case ast.Module(body=[ast.Expr(value=ast.Call(keywords=keywords))]) if link.how == "option":
            found = next((k.value for k in keywords if k.arg == "default"), None)
        case ast.Module() as tree:
            returned = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value is not None]
            found = returned[0] if returned else None
    if found is None:
        spans = find_spans(code, (link.value.text,)) if link.how in {"literal", "default"} else []
        return spans[0] if len(spans) == 1 else (0, 0)
    return found.col_offset, found.end_col_offset or 0


def _parse(words: str) -> ast.expr | None:
    match parse_line(words) if words else None:
        case ast.Module(body=[ast.Expr(value=value)]):
            return value
    return None
