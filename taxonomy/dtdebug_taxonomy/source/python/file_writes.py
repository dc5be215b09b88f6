"""Calls that write a file or make a folder, by their names and arguments."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.source.python.names import dotted_name, keyword, last_name

_TOUCHES = frozenset({"touch", "write_text", "write_bytes"})
TAKES_A_FILE = frozenset({"copy", "copyfile", "copytree", "move", "rename", "replace", "urlretrieve"})
"""Calls that also need a file which is there."""
_SAVES = frozenset({"save", "save_file"}) | TAKES_A_FILE
_PATH_FIRST = frozenset({"savez", "savetxt"})
_TO_ONE = frozenset(
    {"save_pretrained", "save_weights", "savefig", "to_csv", "to_parquet", "to_json", "to_pickle", "save"}
)
MAKES_FOLDERS = frozenset({"mkdir", "makedirs"})


def written_path(call: ast.Call) -> ast.expr | None:
    """Return the path that a call writes to."""
    name = last_name(call)
    if name == "open":
        parts = [*([call.func.value] if isinstance(call.func, ast.Attribute) else []), *call.args]
        mode = keyword(call, "mode") or (parts[1] if len(parts) > 1 else None)
        writes = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set("wax") & set(mode.value)
        return parts[0] if writes and parts else None
    if name in _TOUCHES and isinstance(call.func, ast.Attribute):
        return call.func.value
    if name in MAKES_FOLDERS and (call.args or isinstance(call.func, ast.Attribute)):
        return call.args[0] if dotted_name(call.func).startswith("os.") and call.args else call.func.value  # type: ignore[attr-defined]
    if name in _PATH_FIRST and call.args:
        return call.args[0]
    if name in _TO_ONE and len(call.args) == 1:
        return call.args[0]
    if name in _SAVES and len(call.args) > 1:
        return next((each for each in call.args[:2][::-1] if not isinstance(each, ast.Constant) or each.value), None)
    return None
