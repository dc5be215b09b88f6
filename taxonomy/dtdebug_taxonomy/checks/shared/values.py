"""Facts about a value without running the program: that it is a number, or definitely not a string."""

from __future__ import annotations

import ast
from collections import defaultdict

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function

_NUMBERS = {
    "int", "float", "bool", "len", "abs", "round", "ord", "hash", "id",
    "random.randint", "random.randrange", "random.random", "os.getpid", "os.cpu_count", "time.time",
    "torch.cuda.device_count", "torch.cuda.current_device", "torch.distributed.get_rank",
    "torch.distributed.get_world_size", "torch.distributed.get_node_local_rank", "multiprocessing.cpu_count",
    "numpy.random.randint", "math.ceil", "math.floor",
}  # fmt: skip
"""Calls that return numbers."""
_HOROVOD = ("rank", "local_rank", "size", "local_size", "cross_rank", "cross_size")
_DEPTH = 4


def returned_values(code: Code, function: Function) -> list[ast.expr | None]:
    """Return the value of each `return` of a function of this file."""
    found: dict[Function | None, list[ast.expr | None]] | None = code.__dict__.get("_returned")
    if found is None:
        found = code.__dict__["_returned"] = defaultdict(list)
        for node in code.nodes(ast.Return):
            found[code.function(node)].append(node.value)
    return found.get(function, [])


def not_text(code: Code, node: ast.expr | None, depth: int = _DEPTH) -> str:
    """Return what an expression definitely is if it is not a string: "the number 1", "None"; else ""."""
    if node is None or not depth:
        return ""
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.SetComp | ast.DictComp):
        return "a collection"
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return "a truth value"
    if is_number(code, node, depth):
        return "a number"
    found: list[str] = []
    if isinstance(node, ast.IfExp):
        found = [not_text(code, n, depth - 1) for n in (node.body, node.orelse)]
    elif dotted_name(node):
        found = [not_text(code, v, depth - 1) for v in code.values(node) if v is not node]
    return found[0] if found and all(found) else ""


def _constant(value: object) -> str:
    if isinstance(value, str) or value is Ellipsis:
        return ""
    if value is None:
        return "None"
    if isinstance(value, bytes):
        return "bytes"
    return f"{value}" if isinstance(value, bool) else f"the number {value}"


def is_number(code: Code, node: ast.expr | None, depth: int = _DEPTH) -> bool:
    """True if an expression is definitely a number."""
    if node is None or not depth:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub | ast.UAdd | ast.Invert) or is_number(code, node.operand, depth - 1)
    if isinstance(node, ast.BinOp):
        return _operation(code, node, depth)
    if isinstance(node, ast.Call):
        return _call(code, node, depth)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
        func = node.value.func  # the port of socket.getsockname()
        return isinstance(func, ast.Attribute) and func.attr == "getsockname" and code.constant(node.slice) == 1
    if isinstance(node, ast.IfExp):
        return is_number(code, node.body, depth - 1) and is_number(code, node.orelse, depth - 1)
    return bool(dotted_name(node)) and _name(code, node, depth)


def _operation(code: Code, node: ast.BinOp, depth: int) -> bool:
    left, right = is_number(code, node.left, depth - 1), is_number(code, node.right, depth - 1)
    if isinstance(node.op, ast.Mult | ast.Mod):
        return left and (right or isinstance(node.op, ast.Mod))
    if isinstance(node.op, ast.Add):
        return left or right
    return (left or right) and isinstance(node.op, ast.Sub | ast.FloorDiv | ast.Div | ast.Pow)


def _call(code: Code, call: ast.Call, depth: int) -> bool:
    name = code.name(call.func)
    if name in {"max", "min", "sum"}:
        return bool(call.args) and all(is_number(code, a, depth - 1) for a in call.args)
    if name in _NUMBERS or (name.startswith("horovod.") and name.rsplit(".", 1)[-1] in _HOROVOD):
        return True
    function = code.local_function(call)
    if function is None or name in code.imports:
        return False
    if isinstance(function.returns, ast.Name):
        return function.returns.id in {"int", "float", "bool"}
    values = returned_values(code, function)
    return bool(values) and all(is_number(code, value, depth - 1) for value in values)


def _name(code: Code, node: ast.expr, depth: int) -> bool:
    bindings = code.bound(node)
    if not bindings:
        return _option(code, node) or _field(code, node)
    return all(
        (b.how == "assign" and b.value is not node and is_number(code, b.value, depth - 1))
        or (b.how == "loop" and isinstance(b.value, ast.Call) and code.name(b.value.func) == "range")
        or (b.how == "argument" and _argument(code, b.node))
        for b in bindings
    )


def _field(code: Code, node: ast.expr) -> bool:
    """True for an attribute `self.x` that the class annotates as a number, as data classes do."""
    home = code.class_of(node)
    if home is None or not isinstance(node, ast.Attribute) or dotted_name(node.value) != "self":
        return False
    return any(
        isinstance(s, ast.AnnAssign)
        and dotted_name(s.target) == node.attr
        and isinstance(s.annotation, ast.Name)
        and s.annotation.id in {"int", "float"}
        for s in home.body
    )


def _argument(code: Code, node: ast.AST) -> bool:
    """True for an argument that is annotated as a number, or the index that `torch.multiprocessing.spawn` passes."""
    if not isinstance(node, ast.arg):
        return False
    if isinstance(node.annotation, ast.Name):
        return node.annotation.id in {"int", "float"}
    function = code.function(node)
    if function is None or not function.args.args or function.args.args[0] is not node:
        return False
    return any(
        dotted_name(code.argument(c, "fn", 0)) == function.name
        for c in code.calls("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
    )


def _option(code: Code, node: ast.expr) -> bool:
    """True for an attribute `args.x` that argparse converts to a number."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    found = [c for c in code.methods("add_argument") if node.attr in _destinations(code, c)]
    return bool(found) and all(code.name(code.argument(c, "type")) in {"int", "float"} for c in found)


def _destinations(code: Code, call: ast.Call) -> set[str]:
    given = code.constant(code.argument(call, "dest"))
    if isinstance(given, str):
        return {given}
    names = [v for a in call.args if isinstance(v := code.constant(a), str)]
    return {n.lstrip("-").replace("-", "_") for n in names}
