"""Data loaders of one process whose batch size is named as the global one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DDP, FSDP, LOADER, SAMPLER
from dtdebug_taxonomy.checks.shared.ranks_seen import starts_ranks
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size
from dtdebug_taxonomy.source.text import Span

_GLOBAL = re.compile(
    r"(global|total|effective|overall)_?(train_?)?(batch|bs)(_?size)?$|^(batch|bs)(_?size)?_?(global|total)$",
    re.IGNORECASE,
)


def check(code: Code) -> Iterator[Hit]:
    """Report the batch size."""
    if not (starts_ranks(code) or code.calls(DDP, FSDP, SAMPLER)) or "split_batches" in code.text:
        return
    for call in code.calls(LOADER):
        size = code.argument(call, "batch_size", 1)
        name = dotted_name(size)
        if size is None or not _GLOBAL.search(name.rsplit(".", 1)[-1]) or _is_divided(code, size, name):
            continue
        world, edits = written_name(code, "torch.distributed.get_world_size")
        end = code.span(size).end
        yield Hit(
            code.span(size),
            f"{name} is the batch size of each process here: the global batch is larger by the number of ranks, "
            "and memory may run out.",
            Fix("Divide it by the number of ranks", (*edits, Edit(Span(end, end), f" // {world}()"))),
        )


def _is_divided(code: Code, size: ast.expr, name: str) -> bool:
    """True if it was divided by the number of ranks under the same name."""
    if any(isinstance(v, ast.BinOp | ast.Call) for v in code.values(size)):
        return True
    return any(dotted_name(n.target) == name and is_size(code, n.value) for n in code.nodes(ast.AugAssign))
