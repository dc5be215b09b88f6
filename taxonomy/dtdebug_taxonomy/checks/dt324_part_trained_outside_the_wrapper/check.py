"""Modules passed to an optimizer unwrapped, in a program that wraps another one by DistributedDataParallel."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import OPTIMIZERS
from dtdebug_taxonomy.checks.shared.wrapping import DATA_PARALLEL, DDPS, FSDP1, wrap_of
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_MODULE = re.compile(r"(torch\.nn|torchvision\.models|timm|transformers|diffusers)\.")
_MOST = 50
"""Maximum number of calls to inspect, each of which scans the whole file."""
_SHARES = re.compile(
    r"all_?reduce|average_grad|sync_?grad|reduce_grad|broadcast_coalesced|prepare\(|fully_shard|Horovod"
)
"""Signs that the program may average gradients itself."""


def check(code: Code) -> Iterator[Hit]:
    """Report the parameters passed to the optimizer."""
    wraps = code.calls(*DDPS)
    if not wraps or code.role == "test" or _SHARES.search(code.text):
        return
    for call in code.methods("parameters")[:_MOST]:
        owner = call.func.value  # type: ignore[attr-defined]
        home = code.function(call)
        wrap = next((w for w in wraps if code.function(w) is home and code.order[w] < code.order[call]), None)
        if wrap is None or not isinstance(owner, ast.Name) or not _reaches_optimizer(code, call):
            continue
        if _is_bare(code, owner) and _is_used_by_itself(code, owner) and not _is_passed_on(code, owner):
            line = code.text.place(code.span(wrap).start).line
            other = dotted_name(code.argument(wrap, "module", 0)) or "another module"
            yield Hit(
                code.span(call),
                f"{owner.id} is trained, but it is not wrapped as {other} is (line {line}): nothing averages its "
                "gradients, so each rank trains its own.",
            )


def _is_bare(code: Code, owner: ast.Name) -> bool:
    """True if a name definitely is a module that no wrapper contains."""
    if wrap_of(code, owner, {*DDPS, *FSDP1, *DATA_PARALLEL}) is not None:
        return False
    made = code.made_by(owner)
    return bool(made) and all(_MODULE.match(name) for name in made)


def _is_used_by_itself(code: Code, owner: ast.Name) -> bool:
    """True if the function calls the module directly, not as a part of the wrapped one."""
    home = code.function(owner)
    return any(
        isinstance(c.func, ast.Name) and c.func.id == owner.id and code.function(c) is home
        for c in code.nodes(ast.Call)
    )


def _is_passed_on(code: Code, owner: ast.Name) -> bool:
    """True if the module is passed to something other than its methods: a wrapper, a larger module."""
    home = code.function(owner)
    for name in code.nodes(ast.Name):
        if name.id == owner.id and isinstance(name.ctx, ast.Load) and code.function(name) is home:
            up = code.parent[name]
            whole = isinstance(up, ast.Call) and up.func is not name
            if whole or isinstance(up, ast.keyword | ast.Tuple | ast.List | ast.Dict | ast.Starred):
                return True
    return False


def _reaches_optimizer(code: Code, call: ast.Call) -> bool:
    """True if parameters reach an optimizer: directly, in a group, or in a list made for it."""
    for up in code.ancestors(call):
        if isinstance(up, ast.Call) and code.name(up.func) in OPTIMIZERS:
            return True
        if isinstance(up, ast.Assign):
            return _is_optimized(code, [dotted_name(t) for t in up.targets])
        if isinstance(up, ast.Expr) and isinstance(up.value, ast.Call):
            func = up.value.func
            grows = isinstance(func, ast.Attribute) and func.attr in {"append", "extend"}
            return grows and _is_optimized(code, [dotted_name(func.value)])  # type: ignore[attr-defined]
        if isinstance(up, ast.stmt):
            return False
    return False


def _is_optimized(code: Code, names: list[str]) -> bool:
    given = {dotted_name(n) for c in code.calls(*OPTIMIZERS) if (n := code.argument(c, "params", 0)) is not None}
    return bool(given & set(names) - {""})
