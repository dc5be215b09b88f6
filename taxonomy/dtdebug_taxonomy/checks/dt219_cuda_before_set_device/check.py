"""Work on the current GPU before `set_device()`, which every rank then does on GPU 0."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import rank

_LOSS = re.compile(r"torch\.nn\.(modules\.loss\.)?\w+Loss")
_EMPTY = {"empty_cache", "synchronize", "mem_get_info", "memory_allocated"}


def check(code: Code) -> Iterator[Hit]:
    """Report the first call that allocates on the current GPU."""
    if code.role == "test":
        return
    for setting in code.calls("torch.cuda.set_device"):
        device = code.argument(setting, "device", 0)
        if device is None or not _of_rank(code, device):
            continue
        call = next((c for c in code.nodes(ast.Call) if _comes_before(code, c, setting)), None)
        if call is not None:
            line = code.text.place(code.span(setting).start).line
            yield Hit(
                code.span(call),
                f"The device of this rank is set at line {line} only, so every rank does this on GPU 0: it holds a "
                "context of each of them, some hundred MB, and runs out of memory first.",
            )


def _comes_before(code: Code, call: ast.Call, setting: ast.Call) -> bool:
    if code.order[call] >= code.order[setting] or code.function(call) is not code.function(setting):
        return False
    return _on_current(code, call) and surely_before(code, call, setting) is True


def _of_rank(code: Code, device: ast.expr) -> bool:
    if rank(code, device):
        return True
    inside = (n for v in code.values(device) if v is not None for n in code.inside(v, ast.Name, ast.Subscript))
    return any(rank(code, n) for n in inside)


def _on_current(code: Code, call: ast.Call) -> bool:
    """True if a call definitely works on the current GPU."""
    name = code.name(call.func)
    if name.startswith("torch.cuda.") and name.rsplit(".", 1)[-1] in _EMPTY:
        return not call.args and not call.keywords
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not name.startswith("torch."):
        return not call.args and not call.keywords and not _is_empty(code, call.func.value)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        return bool(call.args) and code.constant(call.args[0]) == "cuda" and not dotted_name(call.args[0])
    return name.startswith("torch.") and code.constant(code.argument(call, "device")) == "cuda"


def _is_empty(code: Code, module: ast.expr) -> bool:
    """True for a loss of torch without weights: it holds no tensor that would be moved."""
    made = [v for v in code.values(module) if isinstance(v, ast.Call)]
    names = (code.name(v.func) for v in made)
    given = {k.arg for v in made for k in v.keywords} | {"" for v in made if v.args}
    return (
        bool(made) and all(_LOSS.fullmatch(n) for n in names) and given.isdisjoint({"", None, "weight", "pos_weight"})
    )
