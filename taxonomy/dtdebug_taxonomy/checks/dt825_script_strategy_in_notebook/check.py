"""Lightning strategies that start the program again as a script, in notebooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.checks.shared.spawning import in_notebook
from dtdebug_taxonomy.source.python.code import Code

_MAKERS = ("pytorch_lightning.Trainer", "lightning_fabric.Fabric")
_SCRIPT = re.compile(
    r"^(ddp(_spawn|_sharded(_spawn)?)?(_find_unused_parameters_(true|false))?|ddp_static_graph|fsdp\w*|deepspeed\w*|ddp2|ddp_cpu)$"
)
_OBJECTS = re.compile(r"(^|\.)(DDP|FSDP|DeepSpeed|DDPSharded|DDPSpawn|ModelParallel)Strategy$")


def check(code: Code) -> Iterator[Hit]:
    """Report the strategy."""
    calls = code.calls(*_MAKERS)
    if not calls or not in_notebook(code):
        return
    for call in calls:
        if _runs_elsewhere(code, call):
            continue
        for name in ("strategy", "accelerator"):
            given = keyword(call, name)
            if given is None:
                continue
            value = code.constant(given.value)
            if isinstance(value, str) and _SCRIPT.match(value):
                yield _hit(code, given.value, value, _fix(code, given, value) if name == "strategy" else None)
            elif name == "strategy" and (made := _starts_scripts(code, given.value)):
                yield _hit(code, given.value, made, None)


def _runs_elsewhere(code: Code, call: ast.Call) -> bool:
    """True if a call is in a function that is handed to another one, which may start the processes itself."""
    home = code.function(call)
    if home is None or home in code.callers:
        return False
    arguments = (a for c in code.nodes(ast.Call) for a in (*c.args, *(k.value for k in c.keywords)))
    return any(isinstance(a, ast.Name) and a.id == home.name for a in arguments)


def _hit(code: Code, node: ast.expr, what: str, fix: Fix | None) -> Hit:
    return Hit(
        code.span(node),
        f"Strategy {what} starts the program again as a script for each process, and a notebook is not a script: "
        "Lightning ends with a MisconfigurationException.",
        fix,
    )


def _starts_scripts(code: Code, node: ast.expr) -> str:
    """Return the class of a strategy object that starts scripts; "" if it is none of them."""
    found = ""
    for value in code.values(node):
        if not isinstance(value, ast.Call) or not _OBJECTS.search(code.name(value.func)):
            return ""
        if code.constant(code.argument(value, "start_method")) in {"fork", "forkserver"}:
            return ""
        found = code.name(value.func).rsplit(".", 1)[-1]
    return found


def _fix(code: Code, given: ast.keyword, value: str) -> Fix | None:
    if not value.startswith("ddp") or not isinstance(given.value, ast.Constant):
        return None
    unused = re.search(r"_find_unused_parameters_(true|false)$", value)
    text = code.source_of(given.value)
    quote = "'" if "'" in text else '"'
    new = f"{quote}ddp_notebook{unused[0] if unused else ''}{quote}"
    return Fix("Use ddp_notebook", (Edit(code.span(given.value), new),))
