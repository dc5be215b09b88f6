"""Functions of a notebook's cells that spawned processes are to run."""

from __future__ import annotations

import ast
import re
from bisect import bisect
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.spawning import in_notebook, spawning
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_USED = re.compile(r"cuda|\bbackward\(|\bgpu\b|device")


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
        if isinstance(target, ast.Lambda) or (isinstance(target, ast.Name) and target.id in code.functions):
            starter = ast.unparse(call.func)
            what = "a lambda" if isinstance(target, ast.Lambda) else f"`{target.id}`"
            yield Hit(
                code.span(call),
                f"{starter} can't run {what}: it is defined in a notebook cell, which spawned processes can't "
                "import. Use accelerate's notebook_launcher, or move it to a module.",
                _fork(code, call),
            )


def _fork(code: Code, call: ast.Call) -> Fix | None:
    """Return a fix that starts the processes as forks of the kernel, which have its functions.

    A fork can use neither CUDA nor autograd's threads if the kernel has used them before.
    """
    func = call.func
    if code.name(func) != "torch.multiprocessing.spawn":
        return None
    before = (c for c in code.nodes(ast.Call) if code.order[c] < code.order[call] and code.function(c) is None)
    if code.has_unpacking(call) or any(_USED.search(code.source_of(c)) for c in before):
        return None
    if any(k.arg == "start_method" for k in call.keywords):
        return None
    last = code.span(call.keywords[-1] if call.keywords else call.args[-1]).end
    imports: tuple[Edit, ...] = ()
    if isinstance(func, ast.Attribute):
        start = f"{code.source_of(func.value)}.start_processes"
    else:
        start, imports = written_name(code, "torch.multiprocessing.start_processes")
    return Fix(
        "Start the processes as forks of this kernel",
        (
            *imports,
            Edit(code.span(func), start),
            Edit(Span(last, last), ', start_method="fork"'),
        ),
        safe=False,
    )


def _texts(code: Code) -> list[tuple[int, bool]]:
    """Return (position, whether it names a file) of each bare string; a cell below a file's name is a copy of it."""
    alone = [s for s in code.tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    texts = [(code.order[s], str(s.value.value).strip()) for s in alone]  # type: ignore[attr-defined]
    return [(at, text.split("\n", 1)[0].endswith(".py")) for at, text in texts]
