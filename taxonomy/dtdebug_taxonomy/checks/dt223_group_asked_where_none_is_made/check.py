"""Calls that need the process group, in programs that create none for a single process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import COLLECTIVES, DIST, INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.ranks import several

_NEEDS = {*COLLECTIVES, DIST + "get_rank", DIST + "get_world_size"}
_ASKS = re.compile(
    r"dist|initiali[sz]ed|world|rank|ddp|parallel|gpu|device|multi|main|master|launch|fsdp|nproc|num_processes",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"deepspeed|fsdp|FullySharded|init_process_group|init_distributed", re.IGNORECASE)
"""Words of programs that have a group in single-process runs too."""
_PLAIN = {"args", "self", "config", "cfg", "opt", "not", "is", "None", "and", "or", "int", "os", "environ", "getenv"}


def check(code: Code) -> Iterator[Hit]:
    """Report the first such call in each function that makes the group only conditionally."""
    if code.role == "test" or "WORLD_SIZE'] =" in code.text:
        return
    yield from _without_own_group(code)
    reported: set[ast.AST] = set()
    for condition in _conditions(code):
        home = code.function(condition)
        later = [c for c in code.calls(*_NEEDS) if code.function(c) is home and code.order[c] > _end(code, condition)]
        found = next((c for c in later if _is_reached(code, c, condition)), None)
        if found is None or found in reported or any(_is_reached(code, c, None) for c in _before(code, condition)):
            continue
        reported.add(found)
        line = code.text.place(code.span(condition).start).line
        last = code.name(found.func).rpartition(".")[2]
        yield Hit(
            code.span(found.func),
            f"The process group is made under a condition (line {line}), and this {last}() is called "
            "in any case: a run of one process fails here.",
        )


def _without_own_group(code: Code) -> Iterator[Hit]:
    """Report the first such call if the group is left to Accelerate, which makes one for several processes only."""
    if not code.calls("accelerate.Accelerator") or code.calls(INIT) or _ALWAYS.search(code.text):
        return
    for call in code.calls(*_NEEDS):
        callers = [c for c in _callers(code, call) if code.function(c) is not None]
        if _is_reached(code, call, None) and all(_is_reached(code, c, None) for c in callers):
            last = code.name(call.func).rpartition(".")[2]
            yield Hit(
                code.span(call.func),
                f"Accelerate makes a process group for several processes only: started as one process, the program "
                f"ends at this {last}(). Accelerate's own (wait_for_everyone, process_index) work with any number.",
            )
            return


def _callers(code: Code, call: ast.Call) -> list[ast.Call]:
    function = code.function(call)
    return code.callers.get(function, []) if function is not None else []


def _conditions(code: Code) -> Iterator[ast.If]:
    """Yield the `if`s that make the group for several processes and have no `else`."""
    inits = code.calls(INIT)
    if len(inits) != 1:
        return
    places: list[ast.AST] = [inits[0]]
    function = code.function(inits[0])
    if function is not None and not any(isinstance(a, ast.If) for a in _function_ancestors(code, inits[0])):
        places = list(code.callers.get(function, ()))
    if len(places) == 1:
        for up in _function_ancestors(code, places[0]):
            if isinstance(up, ast.If) and several(code, up.test) and not up.orelse:
                yield up


def _function_ancestors(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes around a node inside its function."""
    for up in code.ancestors(node):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            return
        yield up


def _end(code: Code, condition: ast.If) -> int:
    return max(code.order[n] for n in ast.walk(condition) if n in code.order)


def _before(code: Code, condition: ast.If) -> list[ast.Call]:
    """Return the calls above the condition; if these run, the group comes from elsewhere."""
    home = code.function(condition)
    return [c for c in code.calls(*_NEEDS) if code.function(c) is home and code.order[c] < code.order[condition]]


def _is_reached(code: Code, call: ast.Call, condition: ast.If | None) -> bool:
    """True if a single-process run reaches a call, judging by the conditions around and before it."""
    words = set(re.findall(r"\w+", code.source_of(condition.test))) - _PLAIN if condition else set()
    inner: ast.AST = call
    for up in _function_ancestors(code, call):
        test = up.test if isinstance(up, ast.If | ast.IfExp | ast.While) and inner is not up.test else None
        if isinstance(up, ast.BoolOp):
            test = up
        if isinstance(up, ast.Try):
            return False
        if test is not None and _is_about(code, test, words):
            return False
        inner = up
    around = (a for a in (call, *_function_ancestors(code, call)) if isinstance(a, ast.stmt))
    return not any(_leaves(code, s, words) for a in around for s in _above(code, a))


def _above(code: Code, statement: ast.stmt) -> list[ast.stmt]:
    return [s for s in code.block(statement) if code.order[s] < code.order[statement]]


def _leaves(code: Code, statement: ast.stmt, words: set[str]) -> bool:
    if not isinstance(statement, ast.If) or not isinstance(statement.body[-1], ast.Return | ast.Raise | ast.Continue):
        return False
    return _is_about(code, statement.test, words)


def _is_about(code: Code, test: ast.expr, words: set[str]) -> bool:
    text = code.source_of(test)
    return bool(_ASKS.search(text) or words & set(re.findall(r"\w+", text)))
