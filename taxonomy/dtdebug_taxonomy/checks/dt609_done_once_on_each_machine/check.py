"""Tracker runs and shared files that are left to local rank 0, which exists on each machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.ranks_seen import depends_on_rank
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_TRACKERS = ("wandb.init", "mlflow.start_run", "swanlab.init", "neptune.init_run", "comet_ml.Experiment")
_FILES = {"torch.save": ("f", 1), "shutil.rmtree": ("path", 0)}
_SEVERAL_MACHINES = re.compile(
    r"nnodes|num_nodes|node_rank|NODE_RANK|SLURM_(NODEID|NNODES)|GROUP_RANK|is_main_process|process_index|global_rank|"
    r"get_rank\(\)|[\"']RANK[\"']|num_machines"
)
_ALL = re.compile(r"node|machine|global|process_index|get_rank|is_main_process", re.IGNORECASE)
"""Words of a condition that also selects one process among all."""
_OWN = re.compile(r"node|host|machine|local_?dir|tmp|temp|scratch|cache", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the call."""
    if code.role == "test" or not _SEVERAL_MACHINES.search(code.text):
        return
    for call in code.calls(*_TRACKERS):
        if (guard := _local(code, call)) is not None:
            yield _hit(code, call, guard, "each machine starts a run of its own.")
    for name, (argument, place) in _FILES.items():
        for call in code.calls(name):
            path = code.argument(call, argument, place)
            guard = _local(code, call)
            if guard is None or path is None or depends_on_rank(code, path) or _OWN.search(code.source_of(path)):
                continue
            yield _hit(code, call, guard, "on shared storage the machines write or remove the same file at once.")


def _hit(code: Code, call: ast.Call, guard: Guard, what: str) -> Hit:
    return Hit(code.span(call), f"Each machine has a local rank 0, and all of them do this: {what}", _fix(code, guard))


def _local(code: Code, node: ast.AST, depth: int = 2) -> Guard | None:
    """Return the condition, here or in callers, that leaves a place to local rank 0 and not to one global rank."""
    around = guards(code).around(node)
    if any(g.test.which != "local" or _ALL.search(code.source_of(getattr(g.node, "test", g.node))) for g in around):
        return None
    found = next((g for g in around if g.test.value == "0" and g.test.equal), None)
    function = code.function(node)
    if found is not None or function is None or not depth:
        return found
    found_there = [_local(code, c, depth - 1) for c in code.callers.get(function, ())]
    return found_there[0] if found_there and all(found_there) else None


def _fix(code: Code, guard: Guard) -> Fix | None:
    """Return a fix that uses Accelerate's global main process instead."""
    if not isinstance(guard.node, ast.If) or guard.early:
        return None
    asked = next(
        (
            a
            for a in code.inside(guard.node.test, ast.Attribute)
            if a.attr == "is_local_main_process" and dotted_name(a)
        ),
        None,
    )
    if asked is None:
        return None
    end = code.span(asked).end
    start = end - len("is_local_main_process")
    return Fix("Ask for the main process of all", (Edit(Span(start, end), "is_main_process"),))
