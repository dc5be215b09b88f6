"""`model.module` of a result of `accelerator.prepare()`, which is the bare model in single-process runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_ASKS = re.compile(
    r"isinstance|hasattr|getattr|num_processes|distributed|use_ddp|multi_gpu|world_size|except AttributeError"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the attribute."""
    if code.role == "test" or not code.calls("accelerate.Accelerator") or _ASKS.search(code.text):
        return
    for node in code.nodes(ast.Attribute):
        model = node.value
        if node.attr != "module" or not isinstance(model, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        owners = [_accelerator(b.node) for b in code.bound(model)]
        if not owners or not all(owners):
            continue
        yield Hit(
            code.span(node),
            f"With one process prepare() gives {model.id} back as it was, without .module: this raises AttributeError.",
            Fix(
                "Ask Accelerate for the model itself",
                (Edit(code.span(node), f"{owners[-1]}.unwrap_model({model.id})"),),
            ),
        )


def _accelerator(node: ast.AST) -> str:
    """Return the name of the accelerator whose `prepare` is assigned; "" if it is none."""
    made = node.value if isinstance(node, ast.Assign) else None
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Attribute) or made.func.attr != "prepare":
        return ""
    return dotted_name(made.func.value)
