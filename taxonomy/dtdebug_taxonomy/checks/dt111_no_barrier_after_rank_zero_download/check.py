"""Data that rank 0 fetches while the other ranks already read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.handing_over import read_by_others, same_file, wait_after, written_by_first
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_FETCHES = re.compile(r"download|urlretrieve|^(wget|gdown|load_dataset|snapshot|extract_archive|untar)")
_NO_READ = re.compile(r"os\.path\.(?!exists|isfile|isdir|getsize)|(\w+\.)*(log|logger|logging|warnings)\.")
_NO_READS = {"print", "str", "len", "repr", "pathlib.Path", "Path", "os.makedirs", "os.mkdir", "isinstance"}
_PATH = re.compile(r"path|dir|root|file|cache|data|dest|folder|repo|name", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the call that fetches."""
    seen: set[ast.AST] = set()
    for call in code.nodes(ast.Call):
        if not _fetches(code, call) or (guard := written_by_first(code, call)) is None or guard.node in seen:
            continue
        readers = (c for c in code.nodes(ast.Call) if c is not call and _reads(code, c, call))
        read = next((c for c in readers if read_by_others(code, c, call, guard)), None)
        if read is not None:
            seen.add(guard.node)
            line = code.text.place(code.span(read).start).line
            yield Hit(
                code.span(call),
                f"Only {'local ' if guard.test.which == 'local' else ''}rank 0 fetches this, and nothing makes the "
                f"others wait: at line {line} they read what is not there yet, or half of it.",
                wait_after(code, guard),
            )


def _last(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _fetches(code: Code, call: ast.Call) -> bool:
    return code.constant(code.argument(call, "download")) is True or bool(_FETCHES.search(_last(call)))


def _reads(code: Code, call: ast.Call, fetch: ast.Call) -> bool:
    """True if a call makes the same kind of data set again, or takes the same path."""
    name = code.name(call.func)
    if code.order[call] < code.order[fetch] or name in _NO_READS or _NO_READ.match(name):
        return False
    if code.name(call.func) and code.name(call.func) == code.name(fetch.func):
        first, other = _paths(fetch), _paths(call)
        return not first or not other or any(same_file(code, a, b) for a in first for b in other)
    return any(same_file(code, a, b) for a in _paths(fetch) for b in _paths(call))


def _paths(call: ast.Call) -> list[ast.expr]:
    values = [*call.args, *(k.value for k in call.keywords if k.arg)]
    return [v for v in values if _is_path(v)]


def _is_path(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and ("/" in node.value or "." in node.value or node.value.isidentifier())
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.Call):
        return dotted_name(node.func).endswith(("path.join", "Path"))
    return bool(_PATH.search(dotted_name(node).rsplit(".", 1)[-1]))
