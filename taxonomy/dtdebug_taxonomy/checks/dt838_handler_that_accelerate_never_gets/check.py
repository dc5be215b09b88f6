"""Accelerate handlers and plugins that are passed nowhere, or that come after the process group was made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code

_ARGUMENT = {
    **dict.fromkeys(
        (
            "AutocastKwargs",
            "DistributedDataParallelKwargs",
            "GradScalerKwargs",
            "InitProcessGroupKwargs",
            "ProfileKwargs",
        ),
        "kwargs_handlers",
    ),
    "DataLoaderConfiguration": "dataloader_config",
    "GradientAccumulationPlugin": "gradient_accumulation_plugin",
    "FullyShardedDataParallelPlugin": "fsdp_plugin",
    "DeepSpeedPlugin": "deepspeed_plugin",
}
_MAKES_GROUP = ("accelerate.PartialState", "accelerate.state.PartialState", "accelerate.Accelerator")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that makes the settings."""
    if code.role == "test" or not code.calls("accelerate.Accelerator"):
        return
    loaded = {n.id for n in code.nodes(ast.Name) if isinstance(n.ctx, ast.Load)}
    for call in code.nodes(ast.Call):
        home, _, last = code.name(call.func).rpartition(".")
        if last not in _ARGUMENT or not home.startswith("accelerate"):
            continue
        if _is_lost(code, call, loaded):
            yield Hit(
                code.span(call),
                f"Nothing gets this: it has no effect unless it is passed to Accelerator({_ARGUMENT[last]}=...).",
            )
        elif last == "InitProcessGroupKwargs" and (first := _made_before(code, call)) is not None:
            line = code.text.place(code.span(first).start).line
            yield Hit(
                code.span(call),
                f"The process group is made by line {line} already: these settings, such as timeout, come too late and "
                "are ignored without a word.",
            )


def _is_lost(code: Code, call: ast.Call, loaded: set[str]) -> bool:
    up = code.parent[call]
    if isinstance(up, ast.Expr):
        return True
    if not isinstance(up, ast.Assign) or len(up.targets) != 1 or not isinstance(up.targets[0], ast.Name):
        return False
    if code.function(call) is None:
        return False  # other modules may import a module-level name
    return up.targets[0].id not in loaded


def _made_before(code: Code, call: ast.Call) -> ast.Call | None:
    """Return the call in the same function that makes the group before the Accelerator with these settings."""
    for made in code.calls(*_MAKES_GROUP):
        inside = made in code.ancestors(call)
        here = code.function(made) is code.function(call) and code.order[made] < code.order[call]
        if here and not inside and surely_before(code, code.statement(made), call):
            return made
    return None
