"""Values of the expressions of a program, worked out from the texts of the values in them; none is ever run.

What makes tensors, lists and ranges is known by the sizes that it gives: enough to decide what a demand asks for.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from math import prod

from msgspec.structs import replace

from dtdebug_taxonomy.text.demands import DemandError, Scope, apply_operator, is_met
from dtdebug_taxonomy.text.value_texts import Value, read_value

Around = Mapping[str, Value]
_MADE = re.compile(r"(?:new_)?(?:empty|zeros|ones|rand|randn|full|randint)$")
_LIKE = re.compile(r"(?:empty|zeros|ones|rand|randn|full)_like$")
_SAME = frozenset({"contiguous", "clone", "detach", "float", "half", "double", "long", "int", "to", "cpu", "cuda"})
_WRAPS = frozenset({"Parameter", "Buffer"})
_MOST, _DEEPEST = 10**12, 40


def work_out_node(node: ast.expr, around: Around, depth: int = 0) -> Value | None:
    """Return the value of an expression, as far as its sizes and numbers follow from those in it."""
    if depth > _DEEPEST:
        return None
    if (known := around.get(ast.unparse(node))) is not None:
        return known

    def inner(part: ast.expr) -> Value | None:
        return work_out_node(part, around, depth + 1)

    match node:
        case ast.Constant(value=None | bool() | int() | float() | str() as plain):
            return read_value(repr(plain))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _number(-n) if (n := _plain(inner(operand))) is not None else None
        case ast.BinOp(left=left, op=operator, right=right):
            return _of_operator(inner(left), operator, inner(right))
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return _of_parts([inner(p) for p in parts], "list" if isinstance(node, ast.List) else "tuple")
        case ast.ListComp(elt=elt, generators=[ast.comprehension(iter=over, ifs=[])]):
            return _repeat(inner(elt), _length(inner(over)))
        case ast.Attribute(value=owner, attr="shape"):
            return _of_shape(inner(owner))
        case ast.Call():
            return _of_call(node, inner, around)
        case ast.Subscript():
            return _of_subscript(node, inner)
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            pair = {name: v for name, part in (("a", left), ("b", right)) if (v := inner(part)) is not None}
            return _compare(ast.Compare(ast.Name("a"), node.ops, [ast.Name("b")]), pair)
        case ast.IfExp(test=test, body=body, orelse=other):
            way = inner(test)
            return inner(body if way.plain else other) if way is not None and isinstance(way.plain, bool) else None
    return None


def _of_subscript(node: ast.Subscript, inner: Callable[[ast.expr], Value | None]) -> Value | None:
    match node.slice:
        case ast.Slice(lower=low, upper=high, step=None):
            ends = [None if end is None else inner(end) or Value(kind="object") for end in (low, high)]
            return _cut(inner(node.value), *ends)
        case ast.Slice():
            return None
    return _item(inner(node.value), _plain(inner(node.slice)))


def _compare(node: ast.Compare, pair: Around) -> Value | None:
    try:
        met = is_met(ast.unparse(node), Scope(pair))
    except DemandError:
        return None
    return None if met is None else Value(kind="number", name="bool", plain=met)


def _of_call(node: ast.Call, inner: Callable[[ast.expr], Value | None], around: Around) -> Value | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    owner = inner(node.func.value) if isinstance(node.func, ast.Attribute) else None
    given = [inner(each) for each in node.args]
    if name in {"get_rank", "get_world_size"} and not node.args and not node.keywords:
        return around.get(f"__{name.removeprefix('get_')}__")
    if _LIKE.search(name) or name in _WRAPS or (owner is not None and owner.kind == "tensor" and name in _SAME):
        return given[0] if (_LIKE.search(name) or name in _WRAPS) and given else owner
    if _MADE.search(name):
        return _tensor(given, node)
    numbers = [n for value in given if (n := _plain(value)) is not None]
    if owner is not None and owner.kind == "tensor":
        return _of_tensor(owner, name, numbers if len(numbers) == len(given) else None)
    if len(given) != 1 or given[0] is None:
        complete = name in {"max", "min"} and len(numbers) == len(given) > 1
        if name == "range" and len(numbers) == len(given) == 2:
            return Value(kind="sequence", name="range", length=max(0, numbers[1] - numbers[0]))
        return _number((max if name == "max" else min)(numbers)) if complete else None
    return _of_builtin(name, given[0])


def _of_builtin(name: str, only: Value) -> Value | None:
    match name:
        case "len":
            return _number(_length(only))
        case "range":
            size = _plain(only)
            return None if size is None else Value(kind="sequence", name="range", length=max(0, size))
        case "int" | "abs":
            size = _plain(only)
            return _number(size if name == "int" or size is None else abs(size))
        case "list" | "tuple" | "sorted" if only.length is not None:
            return replace(only, kind="sequence", name="tuple" if name == "tuple" else "list")
        case "sum" | "max" | "min":
            items = [_plain(item) for item in _items(only) or ()]
            known = [n for n in items if n is not None]
            if items and len(known) == len(items):
                return _number(sum(known) if name == "sum" else max(known) if name == "max" else min(known))
    return None


def _of_tensor(owner: Value, name: str, numbers: list[int] | None) -> Value | None:
    shape = owner.shape
    if shape is None or numbers is None:
        return None
    match name, numbers:
        case "numel", []:
            return _number(prod(shape))
        case "dim", []:
            return _number(len(shape))
        case "size", []:
            return _of_shape(owner)
        case "size", [at]:
            return _number(shape[at]) if -len(shape) <= at < len(shape) else None
        case "chunk", [parts] if shape and parts > 0:
            each = -(-shape[0] // parts)
            return Value(kind="sequence", name="tuple", length=-(-shape[0] // each) if each else parts)
        case "split", [size] if shape and size > 0:
            return Value(kind="sequence", name="tuple", length=-(-shape[0] // size))
        case (("view" | "reshape"), [_, *_]) if -1 not in numbers and prod(numbers) == prod(shape):
            return replace(owner, shape=tuple(numbers))
    return None


def _tensor(given: list[Value | None], node: ast.Call) -> Value | None:
    """Return a tensor of the sizes that stand first in the call."""
    name = ast.unparse(node.func).rpartition(".")[2]
    if name.endswith("randint"):
        given = given[2:]
    whole = given[0] if given and given[0] is not None and given[0].kind == "sequence" else None
    if whole is not None:
        given = list(_items(whole) or ())
        if whole.length != len(given):
            return None
    elif name.endswith("full"):
        return None
    sizes = [n for value in given if (n := _plain(value)) is not None]
    if len(sizes) != len(given) or any(n < 0 for n in sizes):
        return None
    return Value(kind="tensor", name="Tensor", shape=tuple(sizes))


def _of_operator(left: Value | None, operator: ast.operator, right: Value | None) -> Value | None:
    if left is None or right is None:
        return None
    if isinstance(operator, ast.Mult) and left.kind == "sequence":
        times = _plain(right)
        return (
            _repeat(left.items[0] if left.items else None, left.length * times)
            if (times is not None and left.length is not None and left.length <= 1)
            else None
        )
    one, other = left.plain, right.plain
    if not isinstance(one, int | float) or not isinstance(other, int | float):
        return None
    found = apply_operator(operator, one, other) if max(abs(one), abs(other)) < _MOST else None
    return read_value(repr(found)) if found is not None else None


def _of_parts(parts: list[Value | None], name: str) -> Value:
    known = tuple(part for part in parts if part is not None)
    return Value(kind="sequence", name=name, length=len(parts), items=known, whole=len(known) == len(parts))


def _repeat(item: Value | None, length: int | None) -> Value | None:
    if length is None or length < 0:
        return None
    items = () if item is None else (item,)
    return Value(kind="sequence", name="list", length=length, items=items, whole=item is not None)


def _of_shape(owner: Value | None) -> Value | None:
    shape = owner.shape if owner is not None else None
    return None if shape is None else _of_parts([_number(n) for n in shape], "tuple")


def _items(value: Value) -> tuple[Value, ...] | None:
    if not value.whole or value.length is None:
        return None
    return value.items * value.length if len(value.items) == 1 and value.length < 4096 else value.items


def _item(owner: Value | None, at: int | None) -> Value | None:
    items = _items(owner) if owner is not None and at is not None else None
    if owner is not None and owner.kind == "tensor" and owner.shape:
        return replace(owner, shape=owner.shape[1:])
    return items[at] if items and at is not None and -len(items) <= at < len(items) else None


def _cut(owner: Value | None, low: Value | None, high: Value | None) -> Value | None:
    """Return a part of a sequence, or of a tensor's first dimension."""
    ends = [None if end is None else _plain(end) for end in (low, high)]
    if owner is None or any(end is not None and n is None for end, n in zip((low, high), ends, strict=True)):
        return None
    part = slice(*ends)
    if owner.kind == "tensor" and owner.shape:
        return replace(owner, shape=(len(range(owner.shape[0])[part]), *owner.shape[1:]))
    if owner.kind != "sequence" or owner.length is None:
        return None
    items = _items(owner) or ()
    return replace(owner, length=len(range(owner.length)[part]), items=items[part], whole=bool(items))


def _length(value: Value | None) -> int | None:
    if value is None:
        return None
    return value.shape[0] if value.kind == "tensor" and value.shape else value.length


def _plain(value: Value | None) -> int | None:
    plain = value.plain if value is not None else None
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None


def _number(size: int | None) -> Value | None:
    return None if size is None else Value(kind="number", name="int", plain=size)
