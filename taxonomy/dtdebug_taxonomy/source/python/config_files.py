"""Configuration file that a call of a program reads: searched where the program, or its project, may be run."""

from __future__ import annotations

import ast
import posixpath
from typing import NamedTuple

from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.values import ValueIndex

_LOADERS = frozenset({
    *("yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load"),
    *("json.load", "json.loads", "omegaconf.OmegaConf.load"),
})  # fmt: skip
_OPEN = frozenset({"open", "io.open", "pathlib.Path"})
_SAME = frozenset({"os.path.abspath", "os.path.realpath", "str", "os.fspath"})
_STEPS = 6
"""Maximum number of names and calls to follow from a call to the path."""
_UP = 6
"""Number of folders above a program that are searched: it may be run from there."""
_SUFFIXES = (".json", ".yaml", ".yml")


class FileRead(NamedTuple):
    """Configuration that a program reads."""

    config: Config
    option: str = ""
    """Option of the program whose default names it."""


def file_read(code: ValueIndex, call: ast.Call) -> FileRead | None:
    """Return the file whose whole content a call returns; None if unknown."""
    if code.project is None or not code.path:
        return None
    options: list[str] = []
    if code.name(call.func) in _LOADERS and call.args:
        path = _path(code, call.args[0], _STEPS, options)
    else:
        path = _path(code, _given_to_loader(code, call), _STEPS, options)
    if path is None:
        return None
    code.results.note_volatile()
    if not path.endswith(_SUFFIXES) or path.startswith(("/", "~")):
        return None
    home = posixpath.dirname(code.path)
    if path.startswith(_HERE):
        beside = code.project.document(posixpath.normpath(posixpath.join(home, path.removeprefix(_HERE))), code.path)
        return FileRead(beside) if beside is not None else None
    places = upward(home, path, _UP)
    found = [file for each in places if (file := code.project.document(each, code.path)) is not None]
    return FileRead(found[0], *options[:1]) if len(found) == 1 else None


def upward(home: str, path: str, above: int) -> list[str]:
    """Return possible places of a file with a relative path: below a folder and up to `above` above, farthest first."""
    parts = home.split("/") if home else []
    found = []
    for up in range(min(above, len(parts)), -1, -1):
        base = "/".join(parts[: len(parts) - up])
        if up and base == "":
            base = "/" if home.startswith("/") else "."
        found.append(posixpath.normpath(posixpath.join(base, path)))
    return list(dict.fromkeys(found))


_HERE = "\0"
"""Represents the folder of the program at the beginning of a path."""


def _given_to_loader(code: ValueIndex, call: ast.Call) -> ast.expr | None:
    """Return the path argument of a call to a function of another module that returns a file's content."""
    project = code.project
    if project is None or not project.may_hold(code, call.func):
        return None
    defined = project.resolve_call(code, call)  # type: ignore[arg-type]
    if defined is None or defined.code is code or not isinstance(defined.node, ast.FunctionDef):
        return None
    module, function = defined.code, defined.node
    returned = [r.value for r in module.inside(function, ast.Return) if module.function(r) is function]
    values = module.values(returned[0]) if len(returned) == 1 else []
    loads = values[0] if len(values) == 1 else None
    if not isinstance(loads, ast.Call) or module.name(loads.func) not in _LOADERS or not loads.args:
        return None
    name = _argument_opened(module, loads.args[0], _STEPS)
    places = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return code.argument(call, name, places.index(name)) if name in places else None


def _argument_opened(module: ValueIndex, node: ast.expr | None, left: int) -> str:
    """Return the argument of a function that is the path of the file which an expression represents."""
    if isinstance(node, ast.Call) and node.args and module.name(node.func) in _OPEN and left:
        return _argument_opened(module, node.args[0], left - 1)
    bound = module.bound(node) if isinstance(node, ast.Name) else []
    if len(bound) != 1 or not left:
        return ""
    if bound[0].how == "argument" and isinstance(node, ast.Name):
        return node.id
    return _argument_opened(module, bound[0].value, left - 1)


def _path(code: ValueIndex, node: ast.expr | None, left: int, options: list[str]) -> str | None:
    """Return the path that an expression is, or that the file was opened with."""
    if node is None or not left:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _join_parts([_path(code, node.left, left - 1, options), _path(code, node.right, left - 1, options)])
    if isinstance(node, ast.Call):
        return _of_call(code, node, left - 1, options)
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        return _folder(_path(code, node.value, left - 1, options))
    if dotted_name(node) == "__file__":
        return f"{_HERE}__file__"
    if not dotted_name(node):
        return None
    bound = code.bound(node)
    if not bound and isinstance(node, ast.Attribute):
        code.results.note_volatile()
        return _by_option(code, node, options)
    if len(bound) != 1:
        return None
    if bound[0].how in {"assign", "with"} and bound[0].value is not node:
        return _path(code, bound[0].value, left - 1, options)
    code.results.note_volatile()
    return _path(code, _default(code, bound[0].node), left - 1, options)


def _of_call(code: ValueIndex, call: ast.Call, left: int, options: list[str]) -> str | None:
    name = code.name(call.func)
    if name in _OPEN and call.args:
        return _path(code, call.args[0], left, options) if len(call.args) == 1 or name != "pathlib.Path" else None
    if name in _SAME and len(call.args) == 1:
        return _path(code, call.args[0], left, options)
    if name == "os.path.dirname" and len(call.args) == 1:
        return _folder(_path(code, call.args[0], left, options))
    if name == "os.path.join":
        return _join_parts([_path(code, a, left, options) for a in call.args])
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"open", "read_text", "read", "resolve", "absolute"}:
        return _path(code, call.func.value, left, options)
    return None


def _by_option(code: ValueIndex, node: ast.Attribute, options: list[str]) -> str | None:
    """Return the default of `args.config`, an option of the program that may be set differently."""
    made = code.values(node.value)
    if len(made) != 1 or not isinstance(made[0], ast.Call) or not parses(code, made[0]):
        return None
    calls = [c for c in code.methods("add_argument") if f"--{node.attr}" in _spellings(c)]
    if len(calls) != 1 or any(k.arg in {"required", "dest", "action", "nargs"} for k in calls[0].keywords):
        return None
    default = code.argument(calls[0], "default")
    options.append(f"--{node.attr}")
    return default.value if isinstance(default, ast.Constant) and isinstance(default.value, str) else None


def parses(code: ValueIndex, call: ast.Call) -> bool:
    """True if a call is `parser.parse_args()`, or of a function that returns its result."""
    returned = code.returned_values(call)
    made = [v for r in returned for v in (code.values(r) if dotted_name(r) else [r])] or [call]
    return all(
        isinstance(v, ast.Call) and isinstance(v.func, ast.Attribute) and v.func.attr == "parse_args" for v in made
    )


def _spellings(call: ast.Call) -> list[str]:
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return [f"--{t[2:].replace('-', '_')}" for t in texts if t.startswith("--")]


def _folder(path: str | None) -> str | None:
    """Return the parent folder of a path below the program's folder."""
    return f"{_HERE}." if path == f"{_HERE}__file__" else f"{_HERE}.." if path == f"{_HERE}." else None


def _join_parts(parts: list[str | None]) -> str | None:
    known = [p for p in parts if p is not None]
    if len(known) < len(parts) or not known or any(p.startswith(("/", "~", _HERE)) for p in known[1:]):
        return None
    return posixpath.join(*known)


def _default(code: ValueIndex, argument: ast.AST) -> ast.expr | None:
    """Return the default of an argument that no call in this file passes, if there are calls."""
    function = code.function(argument)
    if not isinstance(argument, ast.arg) or function is None or not isinstance(function, ast.FunctionDef):
        return None
    a = function.args
    places = [*a.posonlyargs, *a.args]
    calls = code.callers.get(function, [])
    if argument not in places or not calls:
        return None
    at = places.index(argument)
    if any(c.args or c.keywords for c in calls):
        return None
    rest = at - (len(places) - len(a.defaults))
    return a.defaults[rest] if rest >= 0 else None
