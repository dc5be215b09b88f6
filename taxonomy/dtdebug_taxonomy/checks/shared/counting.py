"""Numbers that count only one machine's processes or devices."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.checks.shared.environment import reading
from dtdebug_taxonomy.model.launch_variables import LOCAL_WORLD_SIZE
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_CALLS = {"torch.cuda.device_count", "horovod.torch.local_size"}
_STARTS = (
    *("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes", "torch.multiprocessing.Process"),
    "multiprocessing.Process",
)


def of_one_machine(code: Code, node: ast.expr | None, depth: int = 3) -> bool:
    """True if an expression definitely counts the processes or devices of this machine."""
    if node is None or not depth:
        return False
    if isinstance(node, ast.Call) and code.name(node.func) == "int" and len(node.args) == 1:
        return of_one_machine(code, node.args[0], depth)
    if isinstance(node, ast.Call) and code.name(node.func) in _CALLS:
        return True
    if (read := reading(code, node)) is not None:
        return read.variable in LOCAL_WORLD_SIZE
    if not dotted_name(node):
        return False
    values = code.values(node)
    return bool(values) and all(v is not node and of_one_machine(code, v, depth - 1) for v in values)


def starts_its_ranks(code: Code) -> bool:
    """True if the program starts its own processes, which are then all on one machine."""
    return bool(code.calls(*_STARTS)) or bool(code.methods("Process"))
