"""`worker_init_fn` that seeds without the number of the worker."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import Function
from dtdebug_taxonomy.source.text import Span

_SEEDS = {"numpy.random.seed", "random.seed", "torch.manual_seed"}
_SAME = {"int", "abs", "hash", "min", "max"}
_SETTINGS = {"args", "cfg", "config", "opt", "hparams"}


def check(code: Code) -> Iterator[Hit]:
    """Report the seed."""
    seen: set[ast.Call] = set()
    for loader in code.nodes(ast.Call):
        function = _function(code, code.argument(loader, "worker_init_fn"))
        if function is None or not function.args.args:
            continue
        worker = function.args.args[-1 if len(function.args.args) == 1 else 0].arg
        names = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)}
        for call in code.calls(*_SEEDS):
            if code.function(call) is not function or call in seen or not call.args:
                continue
            if not _is_same(code, call.args[0], names, worker):
                continue
            seen.add(call)
            end = code.span(call.args[0]).end
            yield Hit(
                code.span(call),
                "Every worker is seeded by the same number, in each epoch again: all of them draw the same random "
                "numbers for different samples.",
                Fix("Add the worker's number to the seed", (Edit(Span(end, end), f" + {worker}"),)),
            )


def _function(code: Code, node: ast.expr | None) -> Function | None:
    """Return the function of this file that is passed, also through `functools.partial`."""
    if isinstance(node, ast.Call) and code.name(node.func) == "functools.partial" and len(node.args) == 1:
        node = node.args[0]
    if not isinstance(node, ast.Name):
        return None
    found = code.functions.get(node.id, [])
    return found[0] if len(found) == 1 and code.class_of(found[0]) is None else None


def _is_same(code: Code, seed: ast.expr, names: set[str], worker: str, depth: int = 3) -> bool:
    """True if a seed is definitely one number for all workers."""
    if isinstance(seed, ast.Constant):
        return isinstance(seed.value, int)
    if isinstance(seed, ast.BinOp):
        return all(_is_same(code, n, names, worker, depth) for n in (seed.left, seed.right))
    if isinstance(seed, ast.Call):
        return code.name(seed.func) in _SAME and all(_is_same(code, a, names, worker, depth) for a in seed.args)
    written = dotted_name(seed)
    if not written or written == worker or not depth:
        return False
    if written in names or written.partition(".")[0] in _SETTINGS:
        return "seed" in written.lower() and "worker" not in written.lower()
    values = code.values(seed)
    return all(v is not None and v is not seed and _is_same(code, v, names, worker, depth - 1) for v in values)
