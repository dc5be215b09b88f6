"""Communication calls that return before the communication completes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.knowledge.facts import torch_distributed
from dtdebug_taxonomy.source.python.code import Code

POINT_TO_POINT = (DIST + "isend", DIST + "irecv", DIST + "batch_isend_irecv")
_HOROVOD = (
    *(f"{n}_async{u}" for n in ("allreduce", "broadcast", "grouped_allreduce") for u in ("", "_")),
    *("allgather_async", "alltoall_async", "reducescatter_async"),
)


def asynchronous(code: Code) -> Iterator[ast.Call]:
    """Yield a program's asynchronous communication calls."""
    yield from code.calls(*POINT_TO_POINT)
    yield from horovod.calls(code, *_HOROVOD)
    if "async_op" not in code.text:
        return
    for name, function in torch_distributed().functions.items():
        if not function.async_op:
            continue
        for call in code.calls(DIST + name.removeprefix(DIST)):
            if code.constant(async_op(code, call, name)) is True:
                yield call


def async_op(code: Code, call: ast.Call, name: str) -> ast.expr | None:
    """Return the value passed for `async_op` to a torch.distributed function, by name or position."""
    function = torch_distributed().functions.get(name)
    takes = function.parameters if function is not None else ()
    return code.argument(call, "async_op", takes.index("async_op") if "async_op" in takes else None)
