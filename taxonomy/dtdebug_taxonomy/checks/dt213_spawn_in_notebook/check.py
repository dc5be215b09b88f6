"""Functions of a notebook's cells that spawned processes are to run."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.spawning import in_notebook, spawning
from dtdebug_taxonomy.source.python import Code


def check(code: Code) -> Iterator[Hit]:
    """Reports the call that spawns."""
    if not in_notebook(code):
        return
    for call in spawning(code):
        name = "target" if isinstance(call.func, ast.Attribute) and call.func.attr == "Process" else "fn"
        target = code.argument(call, name, 1 if name == "target" else 0)
        if isinstance(target, ast.Name) and target.id in code.functions and not _shows_a_file(code, call):
            yield Hit(
                code.span(call),
                f"Spawned processes import the program anew and a notebook can't be imported: they end with \"Can't "
                f"get attribute '{target.id}'\". Use accelerate's notebook_launcher, or move it to a module.",
            )


def _shows_a_file(code: Code, call: ast.Call) -> bool:
    """Whether the cell is a copy of a module, as the string at its top says, to be read and not to be run."""
    above = [s for s in code.tree.body if isinstance(s, ast.Expr) and code.order[s] < code.order[call]]
    texts = [s.value.value for s in above if isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)]
    return bool(texts) and texts[-1].strip().split("\n", 1)[0].endswith(".py")
