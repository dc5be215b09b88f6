"""Values that a program takes from a configuration: a file of its project that it names, a dict, a module of its own.

Nothing is run. Values that the program, or its command line, may change are unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import Node, Unknown
from dtdebug_taxonomy.source.python.config_files import file_read
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.values import ValueIndex

_UPDATES = frozenset({"update", "setdefault", "pop", "popitem", "clear", "merge_with", "merge", "merge_from_list"})
_HANDED_ON = re.compile(
    r"merge|overrid|overwrit|update|modif|adjust|fill|apply|resolve|parse|setattr|set_", re.IGNORECASE
)
"""Calls of other modules that may change the configuration passed to them."""


class _Changes(NamedTuple):
    keys: set[str]
    """Keys of subscripts that are written."""
    attributes: set[str]
    """Attributes that are written on anything but `self`."""
    names: set[str]
    """Names that are updated as a whole, written at an unknown key, or passed to a call that may do so."""


def may_change(code: ValueIndex, names: AbstractSet[str], keys: AbstractSet[str], attributes: AbstractSet[str]) -> bool:
    """True if one of these keys or attributes may be written, or one of these names changed as a whole."""
    found: _Changes | None = code.__dict__.get("_changes")
    if found is None:
        found = code.__dict__["_changes"] = _changes(code)
    return bool(keys & found.keys or names & found.names or attributes & found.attributes)


def _changes(code: ValueIndex) -> _Changes:
    found = _Changes(set(), set(), set())
    for subscript in code.nodes(ast.Subscript):
        if isinstance(subscript.ctx, ast.Load):
            continue
        if isinstance(subscript.slice, ast.Constant):
            found.keys.add(str(subscript.slice.value))
        else:
            _whole(code, subscript.value, found)
    for attribute in code.nodes(ast.Attribute):
        if not isinstance(attribute.ctx, ast.Load) and dotted_name(attribute.value) not in {"self", "cls"}:
            found.attributes.add(attribute.attr)
    for call in code.nodes(ast.Call):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _UPDATES:
            _whole(code, func.value, found)
        last = func.attr if isinstance(func, ast.Attribute) else dotted_name(func)
        if _HANDED_ON.search(last) and code.local_function(call) is None:
            for given in (*call.args, *(k.value for k in call.keywords)):
                _whole(code, given, found)
    return found


def _whole(code: ValueIndex, node: ast.expr, found: _Changes) -> None:
    """Add all names of an object: as written, and what callers pass to an argument."""
    while isinstance(node, ast.Subscript):
        node = node.value
    name = dotted_name(node)
    if not name:
        return
    parts = name.split(".")
    found.names.update(".".join(parts[:n]) for n in range(1, len(parts) + 1) if parts[:n] not in (["self"], ["cls"]))
    if "." not in name:
        found.names.update(dotted_name(v) for v in code.values(node) if v is not None and dotted_name(v))


_WRAPPERS = re.compile(
    r"(\w+\.)*(EasyDict|edict|Munch|munchify|AttrDict|DotMap|Box|SimpleNamespace|Namespace|ConfigDict|OmegaConf\.create)"
)
"""Constructors of objects whose attributes are the keys of a dict."""
_ITSELF = "_"
"""Suffix for the name of a module, so that the module itself is found."""
_STEPS = 12
"""Maximum number of names, keys and calls to follow from an expression."""


class ConfiguredValue(NamedTuple):
    """Configured value and its place."""

    value: object
    file: str
    """Name without folders; empty for the program itself."""
    line: int
    option: str = ""
    """Option of the program whose default names the file."""


class _Part(NamedTuple):
    """Part of a configuration: a value of a file, an expression, or a whole module."""

    node: Node | ast.expr | None
    home: Config | ValueIndex
    option: str = ""


class _Way(NamedTuple):
    """Names, keys and attributes traversed while resolving an expression."""

    names: set[str]
    keys: set[str]
    attributes: set[str]


def configured_value(code: ValueIndex, node: ast.expr | None) -> ConfiguredValue | None:
    """Return the value of an expression if a configuration contains it, or None; cached on the program."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        return None
    running: set[ast.expr] = code.__dict__.setdefault("_resolving", set())
    if node in running:
        return None  # a name that leads to itself ends here
    running.add(node)
    try:
        return code.results.get(("configured", node, None), lambda: _resolve_and_tell(code, node))
    finally:
        running.discard(node)


def resolved_expressions(code: ValueIndex) -> list[tuple[ast.expr, ConfiguredValue]]:
    """Return the expressions resolved by a configuration so far, in the order in which they were requested."""
    rows: list[tuple[ast.expr, ConfiguredValue]] = code.__dict__.setdefault("_told", [])
    return rows


def _resolve_and_tell(code: ValueIndex, node: ast.expr) -> ConfiguredValue | None:
    found = _resolve_value(code, node)
    if found is not None:
        resolved_expressions(code).append((node, found))
    return found


def _resolve_value(code: ValueIndex, node: ast.expr) -> ConfiguredValue | None:
    way = _Way(set(), set(), set())
    part = _follow_expression(code, node, way, _STEPS)
    if part is None or not way.keys:
        return None
    code.results.note_volatile()  # other statements may change it
    if may_change(code, way.names, way.keys, way.attributes):
        return None
    if isinstance(part.home, Config):
        value = part.node.value if isinstance(part.node, Node) else None
        if value is None or isinstance(value, dict | list | Unknown) or not isinstance(part.node, Node):
            return None
        return ConfiguredValue(
            value, _name(part.home.path), part.home.text.place(part.node.span.start).line, part.option
        )
    if not isinstance(part.node, ast.Constant) or part.node.value is None:
        return None
    if part.home is not code and may_change(part.home, way.names, way.keys, way.attributes):
        return None
    return ConfiguredValue(part.node.value, "" if part.home is code else _name(part.home.path), part.node.lineno)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _follow_expression(code: ValueIndex, node: ast.expr, way: _Way, left: int) -> _Part | None:
    """Return the part of a configuration that an expression refers to, or None."""
    if not left:
        return None
    if isinstance(node, ast.Constant | ast.Dict):
        return _Part(node, code)
    if isinstance(node, ast.Call):
        return _follow_call(code, node, way, left - 1)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return _below(_follow_expression(code, node.value, way, left - 1), key, way, left) if key is not None else None
    values = code.values(node) if dotted_name(node) else []
    if len(values) == 1 and values[0] is not None and values[0] is not node:
        way.names.add(dotted_name(node))
        return _follow_expression(code, values[0], way, left - 1)
    if isinstance(node, ast.Attribute):
        way.attributes.add(node.attr)
        return _below(_follow_expression(code, node.value, way, left - 1), node.attr, way, left)
    return _follow_import(code, node, way, left) if isinstance(node, ast.Name) else None


def _follow_call(code: ValueIndex, call: ast.Call, way: _Way, left: int) -> _Part | None:
    """Follow a loaded file, the result of a function, an object made of a dict, or `config.get("key")`."""
    file = file_read(code, call)
    if file is not None:
        return _Part(file.config.roots[0], file.config, file.option)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "get" and call.args and not call.keywords:
        key = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        return _below(_follow_expression(code, call.func.value, way, left), key, way, left) if key is not None else None
    if code.name(call.func) == "dict" and not call.args:
        return _Part(call, code)
    if _WRAPPERS.fullmatch(code.name(call.func)):
        inner = [*call.args, *(k.value for k in call.keywords if k.arg is None)]
        whole = len(inner) == 1 and all(k.arg is None for k in call.keywords)
        return _follow_expression(code, inner[0], way, left) if whole else None
    returned = code.returned_values(call)
    return _follow_expression(code, returned[0], way, left) if len(returned) == 1 else None


def _follow_import(code: ValueIndex, node: ast.Name, way: _Way, left: int) -> _Part | None:
    """Follow `from settings import CONFIG`, or the module itself of `import settings`."""
    name = code.imports.get(node.id)
    if name is None or code.project is None:
        return None
    module, rest = code.project.module(code, f"{name}.{_ITSELF}")
    if module is None or len(rest) > 2:
        return None
    way.names.add(node.id)
    whole = _Part(None, module)
    return whole if rest == [_ITSELF] else _below(whole, rest[0], way, left)


def _below(part: _Part | None, key: object, way: _Way, left: int) -> _Part | None:
    """Return the value at a key of a part, or None."""
    if part is None or not left:
        return None
    if isinstance(part.home, Config):
        entry = part.node.entries.get(str(key)) if isinstance(part.node, Node) else None
        way.keys.add(str(key))
        return part._replace(node=entry.node) if entry is not None else None
    way.keys.add(str(key))
    if part.node is None:  # a module
        bound = part.home.bindings.get((part.home.tree, str(key)), [])
        value = bound[0].value if len(bound) == 1 and bound[0].how == "assign" else None
    else:
        value = _item(part.home, part.node, key)
    return _follow_expression(part.home, value, way, left - 1) if value is not None else None


def _item(home: ValueIndex, node: Node | ast.expr, key: object) -> ast.expr | None:
    """Return the value of a key in a dict literal; its table is cached on the program."""
    tables: dict[ast.AST, dict[object, ast.expr]] = home.__dict__.setdefault("_tables", {})
    if not isinstance(node, ast.Dict | ast.Call):
        return None
    if node not in tables:
        tables[node] = _table(node)
    return tables[node].get(key)


def _table(node: ast.Dict | ast.Call) -> dict[object, ast.expr]:
    """Return key -> value of a dict; empty if it includes another dict."""
    if isinstance(node, ast.Call):
        return {k.arg: k.value for k in node.keywords} if all(k.arg for k in node.keywords) else {}
    if None in node.keys:
        return {}
    rows = [(k.value, v) for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant)]
    return dict(rows) if len({key for key, _ in rows}) == len(rows) else {}
