"""Values of expressions that the source alone decides, for one rank of a job of one size.

Literals, names bound once, arithmetic, lists and their repeats, shapes of tensors that are made here, options by their
defaults. What may change in between, or comes from elsewhere, is unknown.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Final, NamedTuple

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.text.value_texts import Value

_DEEPEST = 12
_MOST = 4096
"""Maximum length of a list whose elements are worked out."""
MAX_NUMBER = 10**12
_NUMBERS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: Final[dict[type[ast.cmpop], Callable[[float, float], bool]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_SIZE = ("torch.distributed.get_world_size",)
_RANK = ("torch.distributed.get_rank",)
_ENVIRONMENT = ("os.environ.get", "os.getenv")
_FILLED = {
    "torch.zeros": "float32", "torch.ones": "float32", "torch.empty": "float32", "torch.rand": "float32",
    "torch.randn": "float32",
}  # fmt: skip
"""Functions that take a shape as numbers or as one tuple, with the dtype of their results."""
_ALIKE = frozenset(f"torch.{kind}_like" for kind in ("zeros", "ones", "empty", "rand", "randn", "full"))
_KEPT = frozenset({"clone", "detach", "contiguous", "cuda", "cpu", "requires_grad_", "pin_memory", "zero_", "fill_"})
"""Methods of a tensor that keep its shape and dtype."""
_TURNED = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64",
    "int": "int32", "bool": "bool",
}  # fmt: skip
_DTYPES = frozenset(
    {"float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"}
)
_SAME = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}
_CHANGES = frozenset({"append", "extend", "insert", "pop", "remove", "clear", "resize_", "resize_as_"})
"""Methods that change the length of a list or the shape of a tensor."""


class World(NamedTuple):
    """The job and the rank for which values are asked; None where it is not known."""

    size: int | None = None
    rank: int | None = None


ANYWHERE = World()


class Origin(NamedTuple):
    """A name that was followed to its value."""

    name: str
    node: ast.AST
    """Statement that binds it, or call that adds an option."""
    code: Code
    """File that contains the node."""
    is_default: bool = False
    """True for the default of an option."""


Option = Callable[[ast.Attribute], tuple[object, Origin] | None]
"""Value of `args.name`, with the call that adds the option."""


class KnownValues:
    """Values in one program, for one rank."""

    def __init__(self, code: Code, world: World = ANYWHERE, option: Option | None = None) -> None:
        self.code, self.world, self.option = code, world, option
        self.origins: dict[str, Origin] = {}
        """Names that were followed, in order."""
        self.by_world = False
        """True if the size of the job or the rank was asked for, known or not."""
        self._left = 400

    def value(self, node: ast.expr | None, depth: int = _DEEPEST) -> Value | None:
        """Return the value of an expression; None if the source does not decide it."""
        self._left -= 1
        if node is None or depth <= 0 or self._left < 0:
            return None
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as plain):
                return plain_value(plain)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return self._sequence(node, parts, depth)
            case ast.BinOp():
                return self._arithmetic(node, depth)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                number = _number(self.value(inner, depth - 1))
                return None if number is None else plain_value(-number)
            case ast.IfExp():
                truth = self.truth(node.test, depth - 1)
                return None if truth is None else self.value(node.body if truth else node.orelse, depth - 1)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                truth = self.truth(node, depth - 1)
                return None if truth is None else plain_value(truth)
            case ast.ListComp(elt=element, generators=[ast.comprehension(ifs=[], is_async=0) as loop]):
                return self._comprehension(element, loop, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.Name() | ast.Attribute():
                return self._value_of_name(node, depth)
            case ast.Subscript():
                return self._item(node, depth)
        return None

    def truth(self, node: ast.expr, depth: int = _DEEPEST) -> bool | None:
        """Return whether a test holds; None if the source does not decide it."""
        match node:
            case ast.BoolOp(op=op, values=parts):
                found, stop = [self.truth(part, depth - 1) for part in parts], isinstance(op, ast.Or)
                return stop if stop in found else None if None in found else not stop
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                truth = self.truth(inner, depth - 1)
                return None if truth is None else not truth
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                known = self.value(left, depth - 1)
                return None if known is None else (known.kind == "none") is isinstance(op, ast.Is)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                one, other = _plain(self.value(left, depth - 1)), _plain(self.value(right, depth - 1))
                alike = isinstance(one, str) is isinstance(other, str)
                known_both = one is not None and other is not None and alike
                return _COMPARED[type(op)](one, other) if known_both else None  # type: ignore[arg-type]
            case ast.Compare():
                return None
        found_value = self.value(node, depth - 1)
        if found_value is None or found_value.kind not in {"number", "none", "text"}:
            return None
        return found_value.kind != "none" and (bool(found_value.plain) if found_value.plain is not None else None)

    def _sequence(self, node: ast.Tuple | ast.List, parts: list[ast.expr], depth: int) -> Value | None:
        if any(isinstance(part, ast.Starred) for part in parts):
            return None
        found = [self.value(part, depth - 1) for part in parts]
        return _list_of("list" if isinstance(node, ast.List) else "tuple", found)

    def _comprehension(self, element: ast.expr, loop: ast.comprehension, depth: int) -> Value | None:
        length = _length(self.value(loop.iter, depth - 1))
        if length is None:
            return None
        names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
        varies = any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(element))
        item = None if varies else self.value(element, depth - 1)
        return _repeat("list", item, length)

    def _arithmetic(self, node: ast.BinOp, depth: int) -> Value | None:
        left, right = self.value(node.left, depth - 1), self.value(node.right, depth - 1)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult) and "sequence" in (left.kind, right.kind):
            row, times = (left, right) if left.kind == "sequence" else (right, left)
            number = _number(times)
            if row.length is None or not isinstance(number, int) or not 0 <= number <= MAX_NUMBER:
                return None
            if len(row.items) == 1 and row.whole:
                return _repeat(row.name, row.items[0], row.length * number)
            return Value(kind="sequence", name=row.name, length=row.length * number)
        one, other = _number(left), _number(right)
        work = _NUMBERS.get(type(node.op))
        if one is None or other is None or work is None or max(abs(one), abs(other)) > MAX_NUMBER:
            return None
        if not other and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
            return None
        return plain_value(work(one, other))

    def _value_of_name(self, node: ast.Name | ast.Attribute, depth: int) -> Value | None:
        code, full = self.code, self.code.name(node)
        if full.startswith("torch.") and full[6:] in {*_DTYPES, *_SAME}:
            dtype = _SAME.get(full[6:], full[6:])
            return Value(kind="type", name="dtype", plain=dtype, dtype=dtype)
        if isinstance(node, ast.Attribute) and node.attr in {"shape", "ndim"}:
            owner = self.value(node.value, depth - 1)
            if owner is not None and owner.kind == "tensor" and owner.shape is not None:
                return _shape_of(owner) if node.attr == "shape" else plain_value(len(owner.shape))
            return None
        bound = code.bound(node)
        if not bound and isinstance(node, ast.Attribute) and self.option is not None:
            known = self.option(node)
            if known is None:
                return None
            self.origins.setdefault(dotted_name(node), known[1])
            return plain_value(known[0]) if isinstance(known[0], bool | int | float | str) else None
        if len(bound) != 1 or bound[0].how != "assign" or bound[0].value in (None, node):
            return None
        found = self.value(bound[0].value, depth - 1)
        if found is None or (found.kind not in {"number", "text", "none", "type"} and self._may_change(node)):
            return None
        self.origins.setdefault(dotted_name(node), Origin(dotted_name(node), bound[0].node, code))
        return found

    def _may_change(self, node: ast.expr) -> bool:
        """True if an object that a name stands for may have got another length or shape since it was made."""
        code, name = self.code, dotted_name(node)
        function = code.function(node)
        near = function is not None and isinstance(node, ast.Name)  # an object's attribute any method may change
        for use in code.inside(function, ast.Name) if function is not None and near else code.nodes(type(node)):
            if dotted_name(use) != name or not isinstance(use.ctx, ast.Load):  # type: ignore[attr-defined]
                continue
            if code.function(use) is not function and not isinstance(use, ast.Attribute):
                continue
            up = code.parent.get(use)
            if isinstance(up, ast.Attribute) and up.attr in _CHANGES:
                return True
            if isinstance(up, ast.Call) and use in up.args and code.local_function(up) is not None:
                return True
            if isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Del | ast.Store):
                return True
        return False

    def _item(self, node: ast.Subscript, depth: int) -> Value | None:
        if self.code.name(node.value) == "os.environ":
            return self._variable(self.code.constant(node.slice), as_text=True)
        owner, at = self.value(node.value, depth - 1), _number(self.value(node.slice, depth - 1))
        if owner is None or not isinstance(at, int) or owner.kind != "sequence" or not owner.length:
            return None
        if not -owner.length <= at < owner.length or not owner.items or not owner.whole:
            return None
        return owner.items[0] if len(owner.items) == 1 else owner.items[at]

    def _variable(self, name: object, *, as_text: bool) -> Value | None:
        """Return what a launcher puts into a variable."""
        if name not in {"WORLD_SIZE", "RANK"}:
            return None
        self.by_world = True
        number = self.world.size if name == "WORLD_SIZE" else self.world.rank
        return None if number is None else plain_value(str(number) if as_text else number)

    def _call(self, call: ast.Call, depth: int) -> Value | None:
        name = self.code.name(call.func)
        if self.code.has_unpacking(call):
            return None
        if name in _SIZE + _RANK and not call.args and not call.keywords:
            return self._variable("WORLD_SIZE" if name in _SIZE else "RANK", as_text=False)
        if name in _ENVIRONMENT and call.args:
            return self._variable(self.code.constant(call.args[0]), as_text=True)
        if name in _FILLED:
            return self._fill(call, _FILLED[name], depth)
        if name in _ALIKE and call.args:
            return self._with_dtype(call, self.value(call.args[0], depth - 1), depth)
        if name == "torch.full":
            shape, filled = self._shape(call.args[:1], depth), self.value(self._second(call), depth - 1)
            kind = {"int": "int64", "float": "float32", "bool": "bool"}.get(filled.name if filled else "")
            return self._with_dtype(call, _tensor(shape, kind), depth)
        if name == "torch.arange" and len(call.args) == 1:
            end = _number(self.value(call.args[0], depth - 1))
            return self._with_dtype(call, _tensor((end,), "int64"), depth) if isinstance(end, int) else None
        if name == "torch.tensor" and call.args:
            return self._with_dtype(call, _literal_tensor(self.value(call.args[0], depth - 1)), depth)
        if name.isidentifier() and name not in self.code.imports and name not in self.code.functions and call.args:
            return self._built_in(name, call, depth)
        if isinstance(call.func, ast.Attribute):
            return self._method(call, call.func, depth)
        return None

    @staticmethod
    def _second(call: ast.Call) -> ast.expr | None:
        return call.args[1] if len(call.args) > 1 else None

    def _built_in(self, name: str, call: ast.Call, depth: int) -> Value | None:
        found = [self.value(a, depth - 1) for a in call.args]
        only = found[0]
        if only is None or any(value is None for value in found):
            return None
        match name:
            case "len":
                length = _length(only)
                return None if length is None else plain_value(length)
            case "int" if len(found) == 1:
                text = only.plain
                whole = isinstance(text, str) and text.lstrip("-").isdecimal()
                return plain_value(int(text)) if whole or isinstance(text, int | float) else None  # type: ignore[arg-type]
            case "range":
                numbers = [_number(value) for value in found]
                if not all(isinstance(n, int) for n in numbers) or (len(numbers) == 3 and not numbers[2]):
                    return None
                row = range(*numbers)  # type: ignore[arg-type]
                items = tuple(map(plain_value, row)) if len(row) <= _MOST else ()
                return Value(kind="sequence", name="range", length=len(row), items=items, whole=len(items) == len(row))
            case "list" | "tuple" if len(found) == 1 and only.kind == "sequence":
                return Value(kind="sequence", name=name, length=only.length, items=only.items, whole=only.whole)
            case "max" | "min" if len(found) > 1:
                known = [n for value in found if (n := _number(value)) is not None]
                return plain_value((max if name == "max" else min)(known)) if len(known) == len(found) else None
        return None

    def _fill(self, call: ast.Call, dtype: str, depth: int) -> Value | None:
        size = self.code.argument(call, "size")
        return self._with_dtype(call, _tensor(self._shape([size] if size else call.args, depth), dtype), depth)

    def _shape(self, parts: list[ast.expr], depth: int) -> tuple[int, ...] | None:
        found = [self.value(part, depth - 1) for part in parts]
        if len(found) == 1 and found[0] is not None and found[0].kind == "sequence":
            row = found[0]
            found = [*(row.items * (row.length or 0) if len(row.items) == 1 else row.items)]
            if not row.whole:
                return None
        sizes = [n for value in found if isinstance(n := _number(value), int) and n >= 0]
        return tuple(sizes) if len(sizes) == len(found) else None

    def _with_dtype(self, call: ast.Call, made: Value | None, depth: int) -> Value | None:
        asked = self.code.argument(call, "dtype")
        if made is None or made.kind != "tensor":
            return None
        known = self.value(asked, depth - 1) if asked is not None else None
        dtype = made.dtype if asked is None else known.dtype if known is not None else None
        return _tensor(made.shape, dtype)

    def _method(self, call: ast.Call, func: ast.Attribute, depth: int) -> Value | None:
        if func.attr not in _METHODS:
            return None
        owner = self.value(func.value, depth - 1)
        if owner is None or owner.kind != "tensor" or owner.shape is None:
            return None
        numbers = [_number(self.value(a, depth - 1)) for a in call.args]
        whole = [n for n in numbers if isinstance(n, int)]
        if func.attr in _KEPT:
            return owner
        if func.attr in _TURNED:
            return _tensor(owner.shape, _TURNED[func.attr])
        if func.attr == "to":
            return None if call.keywords or len(call.args) != 1 else self._move(owner, call.args[0], depth)
        if func.attr == "numel":
            return plain_value(math.prod(owner.shape))
        if func.attr == "dim":
            return plain_value(len(owner.shape))
        if len(whole) != len(call.args) or call.keywords:
            return None
        if func.attr == "size":
            at = whole[0] if whole else None
            fits = at is not None and -len(owner.shape) <= at < len(owner.shape)
            return _shape_of(owner) if at is None else plain_value(owner.shape[at]) if fits else None
        if func.attr == "unsqueeze" and whole and 0 <= whole[0] <= len(owner.shape):
            return _tensor((*owner.shape[: whole[0]], 1, *owner.shape[whole[0] :]), owner.dtype)
        if func.attr == "chunk" and len(whole) == 1 and whole[0] > 0 and owner.shape and owner.shape[0]:
            each = -(-owner.shape[0] // whole[0])
            count = -(-owner.shape[0] // each)
            even = count * each == owner.shape[0]
            part = _tensor((each, *owner.shape[1:]), owner.dtype) if even else None
            return _repeat("tuple", part, count)
        if (
            func.attr in {"view", "reshape"}
            and whole
            and min(whole) >= 0
            and math.prod(whole) == math.prod(owner.shape)
        ):
            return _tensor(tuple(whole), owner.dtype)
        return None

    def _move(self, owner: Value, to: ast.expr, depth: int) -> Value | None:
        """Return a tensor after `.to(...)`: of a dtype, or moved to a device."""
        known = self.value(to, depth - 1)
        if known is not None and known.kind == "type":
            return _tensor(owner.shape, known.dtype)
        if known is not None and known.kind in {"text", "number"}:
            return owner
        return _tensor(owner.shape, None)


_METHODS = frozenset({*_KEPT, *_TURNED, "to", "numel", "dim", "size", "unsqueeze", "chunk", "view", "reshape"})


def plain_value(plain: object) -> Value:
    """Return a number, a truth value, a string or None as a value."""
    if plain is None:
        return Value(kind="none")
    if isinstance(plain, str):
        return Value(kind="text", name="str", plain=plain, length=len(plain))
    return Value(kind="number", name=type(plain).__name__, plain=plain)  # type: ignore[arg-type]


def _number(value: Value | None) -> int | float | None:
    plain = value.plain if value is not None and value.kind == "number" else None
    return plain if isinstance(plain, int | float) else None


def _plain(value: Value | None) -> int | float | str | None:
    return value.plain if value is not None and value.kind in {"number", "text"} else None


def _length(value: Value | None) -> int | None:
    if value is None:
        return None
    if value.kind == "tensor":
        return value.shape[0] if value.shape else None
    return value.length if value.kind in {"sequence", "text"} else None


def _list_of(name: str, found: list[Value | None]) -> Value:
    """Return a sequence; its elements count only if all are known, and equal ones stand once, as texts show them."""
    items = tuple(value for value in found if value is not None)
    whole = len(items) == len(found)
    if whole and len(items) > 1 and all(item == items[0] for item in items):
        items = items[:1]
    return Value(kind="sequence", name=name, length=len(found), items=items if whole else (), whole=whole)


def _repeat(name: str, item: Value | None, times: int) -> Value:
    items = () if item is None or not times else (item,)
    return Value(kind="sequence", name=name, length=times, items=items, whole=bool(items) or not times)


def _shape_of(tensor: Value) -> Value:
    shape = tensor.shape or ()
    return _list_of("tuple", [plain_value(size) for size in shape])


def _tensor(shape: tuple[int, ...] | None, dtype: str | None) -> Value | None:
    return None if shape is None else Value(kind="tensor", name="Tensor", shape=shape, dtype=dtype, contiguous=True)


def _literal_tensor(row: Value | None) -> Value | None:
    """Return the tensor of a list of numbers, or of one number."""
    if row is None:
        return None
    if row.kind == "number":
        return _tensor((), {"int": "int64", "float": "float32", "bool": "bool"}.get(row.name))
    if row.kind != "sequence" or not row.whole or not row.length:
        return None
    every = row.items * row.length if len(row.items) == 1 else row.items
    numbers = [n for value in every if (n := _number(value)) is not None]
    if len(numbers) != len(every):
        return None
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in numbers)
    return Value(
        kind="tensor", name="Tensor", shape=(len(numbers),), dtype="int64" if whole else None, contiguous=True,
        low=float(min(numbers)), high=float(max(numbers)),
    )  # fmt: skip
