"""Calls that write, copy or remove a file, directly or in a function that they lead to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from dtdebug_taxonomy.checks.shared.everyone import all_within, is_shared
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import guards
from dtdebug_taxonomy.source.python.project import FoundDefinition
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_WRITES = {
    "open": ("file", 0),
    "numpy.save": ("file", 0),
    "numpy.savez": ("file", 0),
    "numpy.savetxt": ("fname", 0),
    "joblib.dump": ("filename", 1),
    "shutil.copytree": ("dst", 1),
    "shutil.copy": ("dst", 1),
    "shutil.copyfile": ("dst", 1),
    "shutil.move": ("dst", 1),
    "shutil.rmtree": ("path", 0),
    "os.remove": ("path", 0),
    "os.unlink": ("path", 0),
    "os.rename": ("dst", 1),
    "os.replace": ("dst", 1),
    "os.symlink": ("dst", 1),
    "torch.jit.save": ("f", 1),
    "omegaconf.OmegaConf.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
}
_ACTS = frozenset((*_WRITES, "torch.save", "os.makedirs", "os.mkdir")) - {"open"}
_METHODS = {"save_pretrained": ("save_directory", 0), "to_csv": ("path_or_buf", 0), "savefig": ("fname", 0)}
_SCRIPTED = ("torch.jit.script", "torch.jit.trace")
_IN_PARTS = ("megatron", "mcore")
"""Packages whose models are split into parts, which the ranks save one each."""
_OF_PATHS = ("write_text", "write_bytes", "unlink", "symlink_to")
_PATHS = (ast.Name, ast.Attribute, ast.JoinedStr, ast.BinOp, ast.Call, ast.Constant)
_DEEPEST = 2
"""Maximum depth of nested calls to follow."""


def file_writes(code: Code) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls that write a file, with its path, if that is known."""
    for call in code.calls(*_WRITES):
        path = code.argument(call, *_WRITES[code.name(call.func)])
        if isinstance(path, _PATHS) and (code.name(call.func) != "open" or _opens_to_write(code, call)):
            yield call, path
    parts = any(name.startswith(_IN_PARTS) for name in code.imports.values())
    for call in code.methods(*(m for m in _METHODS if not (parts and m == "save_pretrained"))):
        path = code.argument(call, *_METHODS[call.func.attr])  # type: ignore[attr-defined]
        if isinstance(path, _PATHS) and not any(k.arg in {"is_main_process", "save_function"} for k in call.keywords):
            yield call, path
    for call in code.methods("save") if code.calls(*_SCRIPTED) else ():
        path = code.argument(call, "f", 0)
        if isinstance(path, _PATHS) and code.is_made_by(call.func.value, *_SCRIPTED):  # type: ignore[attr-defined]
            yield call, path
    for call in code.methods(*_OF_PATHS):
        func: ast.Attribute = call.func  # type: ignore[assignment]
        if isinstance(func.value, _PATHS) and not (func.attr == "unlink" and (call.args or call.keywords)):
            yield call, func.value


def _opens_to_write(code: Code, call: ast.Call) -> bool:
    mode = code.constant(code.argument(call, "mode", 1))
    return isinstance(mode, str) and mode[:1] in {"w", "x"}


def written_together(code: Code, statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements beside one that write, make, rename or remove files in one go with it, itself included.

    A condition on the rank around one alone would leave the others to meet half of its work.
    """
    block = code.block(statement)
    first = last = block.index(statement)
    while first and _acts_on_files(code, block[first - 1]):
        first -= 1
    while last + 1 < len(block) and _acts_on_files(code, block[last + 1]):
        last += 1
    return block[first : last + 1]


def _acts_on_files(code: Code, statement: ast.stmt) -> bool:
    if isinstance(statement, ast.With):
        opened = (i.context_expr for i in statement.items if isinstance(i.context_expr, ast.Call))
        return any(code.name(c.func) == "open" and _opens_to_write(code, c) for c in opened)
    if not isinstance(statement, ast.Expr) or not isinstance(call := statement.value, ast.Call):
        return False
    if code.constant(code.argument(call, "exist_ok", 2)) is True:
        return False  # for all ranks to call
    if code.name(call.func) in _ACTS or getattr(call.func, "attr", "") in (*_METHODS, *_OF_PATHS):
        return not guards(code).around(call)
    if getattr(call.func, "attr", "") == "save" and code.is_made_by(call.func.value, *_SCRIPTED):  # type: ignore[attr-defined]
        return not guards(code).around(call)
    function = code.local_function(call)
    return function is not None and any(
        code.name(c.func) in _ACTS and not guards(code).around(c) for c in code.inside(function, ast.Call)
    )


def _writes_in(defined: FoundDefinition, left: int = _DEEPEST) -> FoundDefinition | None:
    """Return the function that writes a file whose path depends only on arguments: this one or one that it calls."""
    code, function = defined
    project = code.project
    if isinstance(function, ast.ClassDef) or code.role == "test" or code.class_of(function) is not None:
        return None
    known: dict[tuple[ast.AST, int], tuple[FoundDefinition | None, set[str]]] = code.__dict__.setdefault("_writes", {})
    if (function, left) not in known:
        known[function, left] = None, set()  # stops at recursion
        work = partial(_writes, defined, left)
        known[function, left] = (work(), set()) if project is None else project.noting(work)
    found, consulted = known[function, left]
    if project is not None:
        project.consulted |= consulted
    return found


def _writes(defined: FoundDefinition, left: int) -> FoundDefinition | None:
    code, function = defined
    own = code.__dict__.get("_own_writes")
    if own is None:
        own = code.__dict__["_own_writes"] = {}
        for call, path in file_writes(code):
            own.setdefault(code.function(call), []).append((call, path))
    for call, path in own.get(function, ()):
        if _always(code, call, function) and is_shared(code, path):
            return defined
    for call in code.inside(function, ast.Call) if left else ():
        inner = _called_function(code, call)
        found = _writes_in(inner, left - 1) if inner is not None and inner.node is not function else None
        if found is not None and _always(code, call, function) and all_shared(code, call):
            return found
    return None


def _always(code: Code, call: ast.Call, function: ast.AST) -> bool:
    """True if a function makes a call in each run that does not leave earlier, whatever files exist."""
    for up in code.ancestors(call):
        if up is function:
            return isinstance(up, FUNCTIONS) and all_within(code, call, up)
        if isinstance(up, ast.If | ast.IfExp | ast.ExceptHandler):
            return False
    return False


def written_by(code: Code, call: ast.Call) -> FoundDefinition | None:
    """Return the function that writes a file among those that a call leads to."""
    defined = _called_function(code, call)
    return _writes_in(defined) if defined is not None else None


def _called_function(code: Code, call: ast.Call) -> FoundDefinition | None:
    here = code.local_function(call)
    if here is not None or code.project is None or not code.project.may_hold(code, call.func):
        return FoundDefinition(code, here) if here is not None else None
    return code.project.resolve_call(code, call)


def all_shared(code: Code, call: ast.Call) -> bool:
    """True if the arguments of a call mean the same paths on all ranks."""
    return all(is_shared(code, a) for a in (*call.args, *(k.value for k in call.keywords)))
