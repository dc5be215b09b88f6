"""Functions of a notebook's cells that spawned processes are to run."""

from __future__ import annotations

import ast
from bisect import bisect
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.spawning import in_notebook, spawning
from dtdebug_taxonomy.source.python.code import Code


def check(code: Code) -> Iterator[Hit]:
    """Report the call that spawns."""
    if not in_notebook(code):
        return
    texts = _texts(code)
    for call in spawning(code):
        above = bisect(texts, (code.order[call],)) - 1
        if above >= 0 and texts[above][1]:
            continue
        name = "target" if isinstance(call.func, ast.Attribute) and call.func.attr == "Process" else "fn"
        target = code.argument(call, name, 1 if name == "target" else 0)
        if isinstance(target, ast.Name) and target.id in code.functions:
            starter = ast.unparse(call.func)
            yield Hit(
                code.span(call),
                f"{starter} can't run `{target.id}`: it is defined in a notebook cell, which spawned processes can't "
                "import. Use accelerate's notebook_launcher, or move it to a module.",
            )


def _texts(code: Code) -> list[tuple[int, bool]]:
    """Return (position, whether it names a file) of each bare string; a cell below a file's name is a copy of it."""
    alone = [s for s in code.tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    texts = [(code.order[s], str(s.value.value).strip()) for s in alone]  # type: ignore[attr-defined]
    return [(at, text.split("\n", 1)[0].endswith(".py")) for at, text in texts]
