"""Processes that are forked after CUDA is initialised."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.python.bindings import surely_before
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_PROCESS = {"multiprocessing.Process", "torch.multiprocessing.Process"}
_LAUNCHERS = {"accelerate.notebook_launcher", "accelerate.launchers.notebook_launcher"}
_STARTS = tuple(
    f"torch.cuda.{n}"
    for n in (
        "set_device",
        "current_device",
        "synchronize",
        "init",
        "memory_allocated",
        "mem_get_info",
        "current_stream",
    )
)


def check(code: Code) -> Iterator[Hit]:
    """Report the call that makes the process."""
    places = [*code.calls(*_LAUNCHERS), *(p for p in code.calls(*_PROCESS) if _uses_cuda(code, p))]
    if not places or _spawns(code):
        return
    for place in places:
        use = _use_before(code, place)
        if use is not None:
            line = code.text.place(code.span(use).start).line
            yield Hit(
                code.span(place),
                f"CUDA is already started here (line {line}), and the processes are forked: they fail with 'Cannot "
                "re-initialize CUDA in forked subprocess'.",
            )


def _spawns(code: Code) -> bool:
    """True if the program chooses another start method for processes."""
    calls = code.methods("set_start_method", "get_context")
    return any(word in code.text for word in ('"spawn"', "'spawn'", "forkserver")) and bool(calls)


def _uses_cuda(code: Code, process: ast.Call) -> bool:
    """True if the function that a process runs is in this file and uses CUDA."""
    target = dotted_name(code.argument(process, "target", 1))
    functions = code.functions.get(target.rsplit(".", 1)[-1], []) if target else []
    text = code.source_of(functions[0]) if len(functions) == 1 else ""
    return "cuda" in text or "nccl" in text


def _use_before(code: Code, place: ast.Call) -> ast.Call | None:
    """Return the first call before a place, in its function or at module level, that initialises CUDA."""
    for call in sorted([*code.calls(*_STARTS), *_moves(code)], key=code.order.__getitem__):
        if code.order[call] > code.order[place]:
            return None
        if code.scope(call) in {code.tree, code.scope(place)} and surely_before(code, call, place):
            return call
    return None


def _moves(code: Code) -> Iterator[ast.Call]:
    yield from (c for c in code.methods("cuda") if not code.name(c.func).startswith("torch."))
    for call in code.methods("to"):
        target = code.argument(call, "device", 0)
        for value in code.values(target):
            device = value.args[0] if isinstance(value, ast.Call) and value.args else value
            if isinstance(device, ast.Constant) and str(device.value).startswith("cuda"):
                yield call
    for keyword in code.nodes(ast.keyword):
        call, value = code.parent[keyword], keyword.value
        on_cuda = keyword.arg == "device" and isinstance(value, ast.Constant) and str(value.value).startswith("cuda")
        if on_cuda and isinstance(call, ast.Call) and code.name(call.func).startswith("torch."):
            yield call
