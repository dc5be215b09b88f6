"""The language of contracts: comparisons over arguments and facts, decided from what their texts say.

It is a part of Python's expressions, read as a tree and never run. Every term is a `Value`, a plain value, or unknown;
a demand is true, false or unknown, and only what is false is ever reported.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from dtdebug_taxonomy.text.value_texts import Value

Plain = int | float | str | bool | tuple[int, ...] | tuple[str, ...] | None
Term = Value | Plain
MAX_NUMBER = 10**15


class Scope(NamedTuple):
    """Everything that a demand may look at."""

    values: Mapping[str, Value]
    """Values of arguments and facts by name, and of operands of a guard as they are written (`self.total_steps`);
    what is missing is unknown."""
    passed: frozenset[str] = frozenset()
    """Tests of the library's source that were true where it raised, as `ast.unparse` writes them."""
    message: str = ""
    """Beginning of the message of the exception."""


class UnknownTermError(Exception):
    """The texts do not say it."""


class DemandError(ValueError):
    """The expression is not part of the language."""


def is_met(demand: str, scope: Scope) -> bool | None:
    """Return whether a demand is met; None if the values do not decide it."""
    try:
        return _truth(_tree(demand), scope)
    except UnknownTermError:
        return None


def value_of(expression: str, scope: Scope) -> Plain:
    """Return the plain value of an expression.

    Raises:
        UnknownTermError: the values do not say it.

    """
    return _plain(_term(_tree(expression), scope))


def sides(demand: str) -> tuple[str, str, str]:
    """Return (left side, operator, right side) of a demand that is one comparison; else empty strings."""
    tree = _tree(demand)
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return "", "", ""
    return ast.unparse(tree.left), type(tree.ops[0]).__name__, ast.unparse(tree.comparators[0])


@lru_cache(maxsize=512)
def names_in(expression: str) -> frozenset[str]:
    """Return the arguments and facts that an expression mentions.

    Raises:
        DemandError: it is not part of the language.

    """
    tree = _tree(expression)
    _check(tree)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


def asks_the_failure(demand: str) -> bool:
    """True if a demand asks for what only a failure has: tests of the library, or its message."""
    called = (n.func for n in ast.walk(_tree(demand)) if isinstance(n, ast.Call))
    return any(isinstance(each, ast.Name) and each.id in _OF_FAILURE for each in called)


@lru_cache(maxsize=512)
def _tree(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise DemandError(f"{expression!r} is no expression: {error}") from None


_NODES = (
    ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Name, ast.Constant, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Call, ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Tuple,
)  # fmt: skip


def _check(tree: ast.expr) -> None:
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise DemandError(f"{type(node).__name__} is not part of the language of demands")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _NAMES):
            raise DemandError(f"{ast.unparse(node.func)}() is not one of {', '.join(sorted(_NAMES))}")


def _truth(node: ast.expr, scope: Scope) -> bool | None:
    """Decide a node in three-valued logic: what is unknown does not matter if the rest decides."""
    if isinstance(node, ast.BoolOp):
        parts = [_attempt(part, scope) for part in node.values]
        stop = isinstance(node.op, ast.Or)
        return stop if stop in parts else None if None in parts else not stop
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _attempt(node.operand, scope)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare):
        left, met = _term(node.left, scope), True
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = _term(right_node, scope)
            met = met and _compare(operator, left, right)
            left = right
        return met
    found = _term(node, scope)
    if isinstance(found, bool):
        return found
    raise UnknownTermError


def _attempt(node: ast.expr, scope: Scope) -> bool | None:
    try:
        return _truth(node, scope)
    except UnknownTermError:
        return None


def _compare(operator: ast.cmpop, left: Term, right: Term) -> bool:
    if isinstance(operator, ast.Is | ast.IsNot):
        if isinstance(right, Value) and right.kind == "none":
            same = isinstance(left, Value) and left.kind == "none"
            return same is isinstance(operator, ast.Is)
        raise UnknownTermError
    one, other = _plain(left), _plain(right)
    if isinstance(operator, ast.In | ast.NotIn):
        if not isinstance(other, tuple):
            raise UnknownTermError
        return (one in other) is isinstance(operator, ast.In)
    if isinstance(operator, ast.Eq | ast.NotEq):
        if isinstance(one, str) is not isinstance(other, str) or isinstance(one, tuple) is not isinstance(other, tuple):
            raise UnknownTermError
        return (one == other) is isinstance(operator, ast.Eq)
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if not numbers or any(math.isnan(n) for n in (one, other)):  # type: ignore[arg-type]
        raise UnknownTermError
    return _ORDER[type(operator)](one, other)  # type: ignore[arg-type]


_ORDER: Final[dict[type[ast.cmpop], Callable[[float, float], bool]]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def _term(node: ast.expr, scope: Scope) -> Term:  # noqa: PLR0912 - one case for each part of the language
    named = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    if named and (known := scope.values.get(ast.unparse(node))) is not None:
        return known
    match node:
        case ast.Constant(value=None):
            return Value(kind="none")
        case ast.Constant(value=bool() | int() | float() | str() as plain):
            return plain
        case ast.Tuple(elts=parts):
            return tuple(_plain(_term(part, scope)) for part in parts)  # type: ignore[return-value]
        case ast.Attribute(value=inner, attr=name):
            return _attribute(_term(inner, scope), name)
        case ast.Subscript(value=inner, slice=index):
            return _item(_term(inner, scope), index, scope)
        case ast.Call(func=ast.Name(id="tested"), args=[ast.Constant(value=str() as text)]):
            return True if text in scope.passed else _require(None)
        case ast.Call(func=ast.Name(id="raised"), args=[ast.Constant(value=str() as text)]):
            return True if text in scope.message else _require(None)
        case ast.Call(func=ast.Name(id=name), args=[only]) if name in _FUNCTIONS:
            return _require(_FUNCTIONS[name](_term(only, scope)))
        case ast.Call(func=ast.Name(id=name), args=[one, other]) if name in _PAIRS:
            return _PAIRS[name](_term(one, scope), _term(other, scope))
        case ast.BinOp():
            return _arithmetic(node, scope)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_number(_term(inner, scope))
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp():
            met = _truth(node, scope)
            if met is None:
                raise UnknownTermError
            return met
    raise UnknownTermError


def _require(found: Term) -> Term:
    if found is None:
        raise UnknownTermError
    return found


def _attribute(of: Term, name: str) -> Term:
    if not isinstance(of, Value):
        raise UnknownTermError
    if name in of.fields:
        return of.fields[name]
    inner = of.items[0] if of.kind == "module" and of.items else None
    if inner is not None and name not in {"kind", "name"}:
        return _attribute(inner, name)
    match name:
        case "ndim":
            return _require(None if of.shape is None else len(of.shape))
        case "min":
            return _require(of.low)
        case "max":
            return _require(of.high)
        case "kind" | "name" | "shape" | "dtype" | "device" | "contiguous" | "keys":
            if name == "keys" and not of.whole:
                raise UnknownTermError
            return _require(getattr(of, name))
    raise UnknownTermError


def _item(of: Term, index: ast.expr, scope: Scope) -> Term:
    if isinstance(index, ast.Slice):
        cuts = [None if cut is None else int(_number(_term(cut, scope))) for cut in (index.lower, index.upper)]
        if isinstance(of, tuple):
            return of[cuts[0] : cuts[1]]
        raise UnknownTermError
    at = int(_number(_term(index, scope)))
    if isinstance(of, Value) and of.kind == "sequence" and of.whole and of.length:
        every = of.items * of.length if len(of.items) == 1 else of.items
        return every[at] if -len(every) <= at < len(every) else _require(None)
    if isinstance(of, tuple):
        return of[at] if -len(of) <= at < len(of) else _require(None)
    raise UnknownTermError


def _plain(found: Term) -> Plain:
    """Return what can be compared: a number, a string, a shape; a tensor is none of them."""
    if not isinstance(found, Value):
        return found
    if found.kind == "none":
        raise UnknownTermError
    if found.kind == "sequence" and found.whole:
        every = found.items * (found.length or 0) if len(found.items) == 1 else found.items
        return tuple(_plain(item) for item in every)  # type: ignore[return-value]
    return _require(found.plain)  # type: ignore[return-value]


def _number(found: Term) -> int | float:
    plain = _plain(found)
    if isinstance(plain, int | float):
        return plain
    raise UnknownTermError


def _arithmetic(node: ast.BinOp, scope: Scope) -> int | float:
    left, right = _number(_term(node.left, scope)), _number(_term(node.right, scope))
    found = apply_operator(node.op, left, right) if max(abs(left), abs(right)) <= MAX_NUMBER else None
    if found is None:
        raise UnknownTermError
    return found


def apply_operator(operator: ast.operator, left: float, right: float) -> int | float | None:
    """Return the result of `+`, `-`, `*`, `//` or `%`; None for other operators, and for a division by 0."""
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right:
            return left // right
        case ast.Mod() if right:
            return left % right
    return None


def _length(of: Term) -> Term:
    if isinstance(of, tuple | str):
        return len(of)
    if isinstance(of, Value):
        if of.kind == "tensor" and of.shape:
            return of.shape[0]
        return _require(of.length)
    raise UnknownTermError


def _integers(of: Term) -> tuple[int, ...]:
    plain = of if isinstance(of, tuple) else _plain(of)
    found = tuple(n for n in plain if isinstance(n, int)) if isinstance(plain, tuple) else ()
    if not isinstance(plain, tuple) or len(found) != len(plain):
        raise UnknownTermError
    return found


def _numel(of: Term) -> Term:
    return math.prod(_integers(_attribute(of, "shape")))


def _every(name: str) -> Callable[[Term], Term]:
    """Return a function that gives the one value that all tensors of a sequence have; unknown if they differ."""

    def common(of: Term) -> Term:
        found = _all_of(of, name)
        return found[0] if len(set(found)) == 1 else _require(None)

    return common


def _uniform(name: str) -> Callable[[Term], Term]:
    """Return a function that is true if all tensors of a sequence have one shape or dtype."""
    return lambda of: len(set(_all_of(of, name))) == 1


def _all_of(of: Term, name: str) -> list[Plain]:
    if not isinstance(of, Value) or of.kind != "sequence" or not (of.whole and of.items):
        raise UnknownTermError
    return [_plain(_attribute(item, name)) for item in of.items]


def _unique(of: Term) -> Term:
    plain = of if isinstance(of, tuple) else _plain(of)
    return len(set(plain)) if isinstance(plain, tuple) else _require(None)


def _is_tensor(of: Term) -> Term:
    """Return whether it is a tensor; unknown for a class that may be one."""
    if not isinstance(of, Value) or of.kind in {"object", "module"}:
        raise UnknownTermError
    return of.kind == "tensor"


def _device_type(of: Term) -> Term:
    device = _attribute(of, "device")
    return device.partition(":")[0] if isinstance(device, str) else _require(None)


def _has(of: Term, part: Term) -> Term:
    whole, sought = _plain(of), _plain(part)
    return sought in whole if isinstance(whole, str) and isinstance(sought, str) else _require(None)


def _all_begin(of: Term, prefix: Term) -> Term:
    """Return whether the keys that are shown begin so: a long mapping shows its first ones."""
    if not isinstance(of, Value) or not of.keys or not isinstance(prefix, str):
        raise UnknownTermError
    return all(key.startswith(prefix) for key in of.keys)


def _same_shapes_but(of: Term, dim: Term) -> Term:
    """Return whether all tensors have one shape apart from one dimension."""
    shapes, at = _all_of(of, "shape"), int(_number(dim))
    left = {tuple(n for i, n in enumerate(s) if i != at % len(s)) for s in shapes if isinstance(s, tuple) and s}
    return len(left) == 1 if left else _require(None)


_PAIRS: Final[dict[str, Callable[[Term, Term], Term]]] = {
    "has": _has,
    "all_begin": _all_begin,
    "same_shapes_but": _same_shapes_but,
}
_FUNCTIONS: Final[dict[str, Callable[[Term], Term]]] = {
    "len": _length,
    "numel": _numel,
    "sum": lambda of: sum(_integers(of)),
    "prod": lambda of: math.prod(_integers(of)),
    "min": lambda of: min(_integers(of), default=None),
    "max": lambda of: max(_integers(of), default=None),
    "distinct": _unique,
    "is_tensor": _is_tensor,
    "device_type": _device_type,
    "shape_of_all": _every("shape"),
    "dtype_of_all": _every("dtype"),
    "same_shapes": _uniform("shape"),
    "same_dtypes": _uniform("dtype"),
    "same_ndims": _uniform("ndim"),
}
_OF_FAILURE = frozenset({"tested", "raised"})
_NAMES = frozenset((*_FUNCTIONS, *_PAIRS, *_OF_FAILURE))
