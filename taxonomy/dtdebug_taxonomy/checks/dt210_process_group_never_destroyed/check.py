"""Programs that never destroy their process group."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import deeper, indent_of, is_main, written_name, written_names
from dtdebug_taxonomy.checks.shared.names import DIST, INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function
from dtdebug_taxonomy.source.text import Span

_ENDS = re.compile(r"destroy|clean_?up|tear_?down|shut_?down|finali[sz]e|end_training")
_STARTS = re.compile(r"\bspawn\(|Process\(|Popen|subprocess\.|start_processes|elastic_launch|submitit")
"""Calls after which another process than the last to end makes the group."""
_LEAVES = re.compile(r"\b(sys\.|os\._)?exit\(|\bquit\(")


def check(code: Code) -> Iterator[Hit]:
    """Report the first call that sets up the process group."""
    calls = code.calls(INIT)
    if not calls or code.notebook or _ends(code):
        return
    if "__main__" not in code.text and code.function(calls[0]) is not None:
        return
    backend = code.constant(code.argument(calls[0], "backend", 0))
    if isinstance(backend, str) and "nccl" not in backend:
        return
    yield Hit(
        code.span(calls[0].func),
        "The process group is never destroyed: NCCL warns at the end of each run, and a rank that ends earlier than "
        "others can make these hang or fail in their last communication.",
        _fix(code, calls[0]),
    )


def _ends(code: Code) -> bool:
    names = {n.attr for n in code.nodes(ast.Attribute)} | {n.id for n in code.nodes(ast.Name)}
    return any(_ENDS.search(n.lower()) for n in names)


def _fix(code: Code, call: ast.Call) -> Fix | None:
    """Return a fix that destroys the group after the last statement of its process; None if that is unknown."""
    block = _last_block(code, call)
    if not block or isinstance(block[-1], ast.Return | ast.Raise) or _LEAVES.search(code.source_of(block[-1])):
        return None
    last, indent = block[-1], indent_of(code, block[-1])
    line = code.text.place(code.span(last).end).line
    end = code.text.end_of_line(line)
    if code.parent[code.statement(call)] is code.tree and isinstance(code.parent[call], ast.Expr):
        destroy, imports = written_name(code, DIST + "destroy_process_group")
        text = f"\n{indent}{destroy}()"
    else:
        asked, destroy, imports = written_names(code, DIST + "is_initialized", DIST + "destroy_process_group")
        text = f"\n{indent}if {asked}():\n{deeper(indent)}{destroy}()"
    return Fix("Destroy the group at the end", (*imports, Edit(Span(end, end), text)), safe=False)


def _last_block(code: Code, call: ast.Call) -> list[ast.stmt]:
    """Return the statements that end a rank's process; empty if unknown."""
    if _STARTS.search(code.text):
        worker = _worker(code, call)
        left = worker is None or any(code.function(r) is worker for r in code.inside(worker, ast.Return))
        return [] if worker is None or left else worker.body
    main = next((s for s in reversed(code.tree.body) if is_main(s)), None)
    if isinstance(main, ast.If):
        return main.body if not main.orelse and main.body[0].lineno > main.lineno else []
    return code.tree.body if code.function(call) is None else []


def _worker(code: Code, call: ast.Call) -> Function | None:
    """Return the function that mp.spawn runs, if it makes the group itself or through a function that it calls."""
    spawned = [dotted_name(code.argument(c, "fn", 0)) for c in code.calls("torch.multiprocessing.spawn")]
    if len(spawned) != 1 or len(found := code.functions.get(spawned[0], [])) != 1:
        return None
    maker = code.function(call)
    callers = code.callers.get(maker, ()) if maker is not None else ()
    return found[0] if found[0] in {maker, *map(code.function, callers)} else None
