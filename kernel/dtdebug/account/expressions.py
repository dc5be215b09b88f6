"""Reads from the form of an expression alone whether it is a literal, computes, or parses options."""

from __future__ import annotations

import ast

from dtdebug.account.evaluate import ENVIRONMENT
from dtdebug_taxonomy.model.account import How
from dtdebug_taxonomy.source.python.names import dotted_name, keyword, last_name

_READS = frozenset({"open", "load", "safe_load", "full_load", "read_text", "read_bytes", "read_csv", "loadtxt",
                    "from_pretrained", "fromfile", "memmap", "load_file", "read_parquet"})  # fmt: skip
_LISTS = frozenset({"listdir", "iterdir", "glob", "rglob", "iglob", "scandir"})
"""Calls whose result depends on what stands in a folder."""
_CHOOSES = frozenset({"sorted", "list", "tuple", "max", "min", "next", "iter", "reversed", "set"})
_CONVERSIONS = frozenset({"int", "float", "str", "bool"})
PARSERS = frozenset({"parse_args", "parse_known_args", "parse_args_into_dataclasses"})
"""Methods that parse a command line."""
_LAST = 10**9


def how_of(value: ast.expr) -> How:
    """Return how an assigned expression came to be, as far as it shows that itself."""
    while isinstance(value, ast.Call) and getattr(value.func, "id", "") in _CONVERSIONS and len(value.args) == 1:
        value = value.args[0]
    if is_literal(value):
        return "literal"
    if isinstance(value, ast.Subscript) and dotted_name(value.value).endswith("environ"):
        return "environment"
    if isinstance(value, ast.BoolOp):
        return how_of(value.values[0])
    if not isinstance(value, ast.Call):
        return "assigned"
    if lists_folder(value):
        return "file"
    name = dotted_name(value.func) or (value.func.attr if isinstance(value.func, ast.Attribute) else "")
    if name.endswith(ENVIRONMENT):
        return "environment"
    last = name.rpartition(".")[2]
    return "file" if last in _READS else "option" if last in PARSERS else "called"


def lists_folder(value: ast.expr | None) -> bool:
    """True for an expression that takes names from a folder: `sorted(root.iterdir())[-1]`."""
    while True:
        match value:
            case ast.Subscript():
                value = value.value
            case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _CHOOSES:
                value = first
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                value = value.generators[0].iter
            case ast.Call():
                return last_name(value) in _LISTS
            case _:
                return False


def literal_text(how: How, node: ast.AST, value: ast.expr | None) -> str:
    """Return the value that a literal, a default or the default of an option says."""
    if how == "option" and isinstance(node, ast.Call):
        value = keyword(node, "default")
    return ast.unparse(value) if value is not None and is_literal(value) else ""


def computes(node: ast.expr | None) -> bool:
    """True if an expression computes with a number of its own: `size - 1`."""
    if node is None or is_literal(node):
        return False
    targets = [each.target for each in ast.walk(node) if isinstance(each, ast.comprehension)]
    items = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return any(
        isinstance(each, ast.BinOp)
        and any(isinstance(side, ast.Constant) and type(side.value) in (int, float) for side in (each.left, each.right))
        and not any(isinstance(side, ast.Name) and side.id in items for side in (each.left, each.right))
        for each in ast.walk(node)
    )


def is_literal(value: ast.expr | None) -> bool:
    """True for a constant, or a container of constants."""
    if isinstance(value, ast.UnaryOp):
        return is_literal(value.operand)
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return all(is_literal(each) for each in value.elts)
    if isinstance(value, ast.Dict):
        return all(is_literal(each) for each in value.values) and None not in value.keys
    if isinstance(value, ast.BinOp):
        return is_literal(value.left) and is_literal(value.right)
    return isinstance(value, ast.Constant)


def destinations(call: ast.Call) -> list[str]:
    """Return the names of the attribute or parameter that `add_argument` or `@click.option` sets."""
    if isinstance(named := keyword(call, "dest"), ast.Constant):
        return [str(named.value)]
    words = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    long = [w for w in words if w.startswith("--")] or words
    names = [part.lstrip("-").replace("-", "_") for word in long for part in word.split("/")]
    return [each for name in names for each in (name, name.lower())]


def position_in(name: str, target: ast.expr) -> int | None:
    """Return the number of a name in the innermost tuple of a target that holds it."""
    if not isinstance(target, ast.Tuple | ast.List):
        return None
    for number, each in enumerate(target.elts):
        if isinstance(each, ast.Name) and each.id == name:
            return number
        if (inner := position_in(name, each)) is not None:
            return inner
    return None


def entry(value: ast.expr | None, key: object) -> ast.expr | None:
    """Return the entry of a literal dictionary or list."""
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "dict":
        return next((k.value for k in value.keywords if k.arg == key), None)
    if isinstance(value, ast.List | ast.Tuple) and type(key) is int and -len(value.elts) <= key < len(value.elts):
        return value.elts[key]
    return None


def positional(call: ast.Call, defined: ast.ClassDef, name: str) -> ast.expr | None:
    """Return a field of a data class that was given by its position."""
    fields = field_names(defined)
    number = fields.index(name) if name in fields else _LAST
    return call.args[number] if number < len(call.args) else None


def field_names(defined: ast.ClassDef) -> list[str]:
    """Return the names of the fields of a data class, in order."""
    return [s.target.id for s in defined.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]


def packed_item(call: ast.Call, name: str) -> ast.expr | None:
    """Return the item of `**options` that a call passes as an argument, as an expression."""
    packed = next((k.value for k in call.keywords if k.arg is None), None)
    if packed is None or entry(packed, name) is not None:
        return entry(packed, name)
    if isinstance(packed, ast.Call) and dotted_name(packed.func) == "vars" and packed.args:
        return ast.Attribute(packed.args[0], name)
    inner = packed
    while isinstance(inner, ast.Subscript | ast.Attribute):
        inner = inner.value
    if not isinstance(inner, ast.Name):
        return None
    return ast.copy_location(ast.Subscript(packed, ast.Constant(name)), packed)
