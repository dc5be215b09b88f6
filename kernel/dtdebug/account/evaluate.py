"""Values of expressions in a frame, read only: names, stored attributes, items, lengths, arithmetic."""

from __future__ import annotations

import ast
import builtins
import math
import operator
import os
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from dtdebug.account.objects import (
    MISSING,
    attribute,
    is_exactly,
    is_tensor,
    item,
    loaded,
    module_dict,
    tensor_property,
)
from dtdebug_taxonomy.source.python.names import dotted_name

_MOST = 10**18
_MANY = 4096
"""Maximum number of items of a container that is searched."""
_SIZED = (list, tuple, dict, str, bytes, set, frozenset, range)
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_TESTED: dict[str, Callable[[float], bool]] = {
    f"{module}.{test.__name__}": test
    for module in ("math", "torch")
    for test in (math.isnan, math.isinf, math.isfinite)
}
ENVIRONMENT = ("os.environ.get", "os.getenv", "environ.get", "getenv")
WORLD = ("get_world_size", "get_rank")


def value(node: ast.expr | None, local: Mapping[str, Any], world: Mapping[str, Any]) -> Any:
    """Return the value of an expression, or `MISSING` if it can't be had without running code."""
    try:
        return _value(node, local, world) if node is not None else MISSING
    except Exception:
        return MISSING


def _value(node: ast.expr, local: Mapping[str, Any], world: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            found = item(local, node.id)
            found = item(world, node.id) if found is MISSING else found
            return getattr(builtins, node.id, MISSING) if found is MISSING and world else found
        case ast.Attribute():
            owner = _value(node.value, local, world)
            return MISSING if owner is MISSING else attribute(owner, node.attr)
        case ast.Subscript():
            owner, key = _value(node.value, local, world), _value(node.slice, local, world)
            return _item(owner, key)
        case ast.Slice():
            ends = [None if each is None else _value(each, local, world) for each in (node.lower, node.upper)]
            plain = node.step is None and all(is_exactly(each, (int, type(None))) for each in ends)
            return slice(*ends) if plain else MISSING
        case ast.BinOp():
            return _arithmetic(node, local, world)
        case ast.UnaryOp():
            return _negate(node, local, world)
        case ast.BoolOp():
            return _join_operands(node, [_truth(value(each, local, world)) for each in node.values])
        case ast.Compare(ops=[test], comparators=[right]):
            return _compare(test, _value(node.left, local, world), _value(right, local, world))
        case ast.IfExp():
            way = _value(node.test, local, world)
            return _value(node.body if way else node.orelse, local, world) if type(way) is bool else MISSING
        case ast.Tuple() | ast.List():
            parts = [_value(part, local, world) for part in node.elts]
            whole = MISSING if any(part is MISSING for part in parts) else parts
            return tuple(whole) if isinstance(node, ast.Tuple) and whole is not MISSING else whole
        case ast.Call():
            return _call_value(node, local, world)
    return MISSING


def _negate(node: ast.UnaryOp, local: Mapping[str, Any], world: Mapping[str, Any]) -> Any:
    if isinstance(node.op, ast.USub):
        return _arithmetic(ast.BinOp(ast.Constant(0), ast.Sub(), node.operand), local, world)
    inner = _truth(_value(node.operand, local, world)) if isinstance(node.op, ast.Not) else MISSING
    return MISSING if inner is MISSING else not inner


def number(found: Any) -> Any:
    """Return a plain number, or that in a tensor of one element on the CPU; else `MISSING`."""
    if is_exactly(found, (bool, int, float)):
        return found
    torch = sys.modules.get("torch")
    if found is MISSING or torch is None or type(found) is not loaded("torch", "Tensor"):
        return MISSING
    library = module_dict(torch)
    if tensor_property(found, "device").type != "cpu" or tensor_property(found, "layout") is not library["strided"]:
        return MISSING
    with library["_C"].DisableTorchFunction():
        if library["_C"]._len_torch_dispatch_stack() or found.numel() != 1 or found.dtype.is_complex:  # noqa: SLF001
            return MISSING
        return found.detach().item()


def _truth(found: Any) -> Any:
    """Return whether a value counts as true, or `MISSING`."""
    plain = number(found)
    if plain is not MISSING:
        return bool(plain)
    return bool(found) if found is None or (found is not MISSING and is_exactly(found, _SIZED)) else MISSING


def _join_operands(node: ast.BoolOp, parts: list[Any]) -> Any:
    """Return the truth of `and` or `or`: one part may decide it, whatever the others are."""
    decisive = isinstance(node.op, ast.Or)
    if any(part is decisive for part in parts):
        return decisive
    return MISSING if any(part is MISSING for part in parts) else not decisive


def _compare(test: ast.cmpop, one: Any, other: Any) -> Any:
    if one is MISSING or other is MISSING:
        return MISSING
    if isinstance(test, ast.Is | ast.IsNot):
        return (one is other) is isinstance(test, ast.Is)
    plain = (int, float, bool, str, type(None))
    if isinstance(test, ast.In | ast.NotIn):
        known = is_exactly(other, (list, tuple, set, frozenset, dict, range, str)) and is_exactly(one, plain)
        if not known or len(other) > _MANY or (type(other) is str and type(one) is not str):
            return MISSING
        if not is_exactly(other, (range, str)) and not all(is_exactly(each, plain) for each in other):
            return MISSING
        return (one in other) is isinstance(test, ast.In)
    one, other = (found if is_exactly(found, plain) else number(found) for found in (one, other))
    known = all(is_exactly(each, plain) for each in (one, other))
    return _COMPARED[type(test)](one, other) if known and is_exactly(test, _COMPARED) else MISSING


def _item(owner: Any, key: Any) -> Any:
    if owner is os.environ:
        return os.environ.get(key, MISSING) if type(key) is str else MISSING
    if type(key) is slice:
        return owner[key] if is_exactly(owner, (list, tuple, str)) else MISSING
    return item(tuple(owner) if type(owner) is loaded("torch", "Size") else owner, key)


def _arithmetic(node: ast.BinOp, local: Mapping[str, Any], world: Mapping[str, Any]) -> Any:
    one, other = _value(node.left, local, world), _value(node.right, local, world)
    numbers = all(is_exactly(each, (int, float, bool)) and abs(each) < _MOST for each in (one, other))
    return _OPERATORS[type(node.op)](one, other) if numbers and is_exactly(node.op, _OPERATORS) else MISSING


def _call_value(node: ast.Call, local: Mapping[str, Any], world: Mapping[str, Any]) -> Any:
    name = dotted_name(node.func)
    arguments = [_value(each, local, world) for each in node.args]
    if not world or node.keywords or any(each is MISSING for each in arguments):  # only in the process itself
        return MISSING
    if name in ENVIRONMENT and arguments and all(is_exactly(each, (str, int, float, type(None))) for each in arguments):
        return os.environ.get(*arguments)
    if name == "len" and len(arguments) == 1:
        (only,) = arguments
        if is_tensor(only):
            shape = tensor_property(only, "shape")
            return shape[0] if shape is not MISSING and len(shape) else MISSING
        return len(only) if is_exactly(only, _SIZED) else MISSING
    if name in ("int", "float", "str") and len(arguments) == 1 and is_exactly(arguments[0], (int, float, str, bool)):
        return getattr(builtins, name)(arguments[0])
    if name in ("min", "max", "abs") and arguments and all(is_exactly(each, (int, float)) for each in arguments):
        return getattr(builtins, name)(*arguments)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "dim", "numel"):
        return _size(_value(node.func.value, local, world), node.func.attr, arguments)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not arguments:
        return number(_value(node.func.value, local, world))
    if name in _TESTED and len(arguments) == 1 and number(arguments[0]) is not MISSING:
        return _TESTED[name](number(arguments[0]))
    if name.rpartition(".")[2] in WORLD:
        function = _value(node.func, local, world)
        if type(function) is types.FunctionType and function is loaded("torch.distributed", function.__name__):
            started = loaded("torch.distributed", "is_initialized")
            return function(*arguments) if started is not None and started() else MISSING
    return MISSING


def _size(owner: Any, name: str, arguments: list[Any]) -> Any:
    shape = tensor_property(owner, "shape") if is_tensor(owner) else MISSING
    if shape is MISSING or any(type(each) is not int for each in shape):
        return MISSING
    if name == "dim":
        return len(shape)
    if name == "numel":
        product = 1
        for each in shape:
            product *= each
        return product
    return tuple(shape)[arguments[0]] if arguments else tuple(shape)
