"""Directories that rank 0 creates while the other ranks already write into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.handing_over import read_by_others, same_file, wait_after, written_by_first
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_USES = {
    "open": ("file", 0),
    "torch.save": ("f", 1),
    "numpy.save": ("file", 0),
    "numpy.savez": ("file", 0),
    "os.listdir": ("path", 0),
    "logging.FileHandler": ("filename", 0),
    "shutil.copy": ("dst", 1),
    "shutil.copyfile": ("dst", 1),
}


def check(code: Code) -> Iterator[Hit]:
    """Report the call that creates the directory."""
    if code.role == "test":
        return
    seen: set[ast.AST] = set()
    for call in (*code.calls("os.makedirs", "os.mkdir"), *code.methods("mkdir")):
        where = _directory(code, call)
        if where is None or (guard := written_by_first(code, call)) is None or guard.node in seen:
            continue
        used = next((u for u in _uses(code, where) if read_by_others(code, u, call, guard)), None)
        if used is None:
            continue
        seen.add(guard.node)
        line = code.text.place(code.span(used).start).line
        yield Hit(
            code.span(call),
            f"Only rank 0 makes this directory, and nothing makes the others wait: at line {line} they use it, there "
            "or not.",
            wait_after(code, guard),
        )


def _directory(code: Code, call: ast.Call) -> ast.expr | None:
    name = code.name(call.func)
    if name in {"os.makedirs", "os.mkdir"}:
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) and dotted_name(call.func.value) else None


def _uses(code: Code, where: ast.expr) -> Iterator[ast.Call]:
    """Yield calls that read or write below a directory."""
    for call in code.calls(*_USES):
        path = code.argument(call, *_USES[code.name(call.func)])
        for value in code.values(path):
            if value is not None and _below(code, value, where):
                yield call
                break


def _below(code: Code, path: ast.expr, where: ast.expr) -> bool:
    """True for `os.path.join(d, ...)`, `d / ...`, `f"{d}/..."`, and the directory itself."""
    if same_file(code, path, where):
        return True
    if isinstance(path, ast.Call) and dotted_name(path.func).endswith(("path.join", "Path")) and path.args:
        return same_file(code, path.args[0], where)
    if isinstance(path, ast.BinOp):
        return _below(code, path.left, where)
    if isinstance(path, ast.JoinedStr) and path.values and isinstance(path.values[0], ast.FormattedValue):
        return same_file(code, path.values[0].value, where)
    return False
