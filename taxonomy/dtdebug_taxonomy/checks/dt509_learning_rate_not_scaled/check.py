"""Fixed SGD learning rates in DistributedDataParallel programs that scale neither rate nor batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DDP, INIT
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.ranks import is_size

_SCALED = re.compile(r"lr|learn|rate|batch|bs|epoch", re.IGNORECASE)
_KNOWS = re.compile(r"warm_?up|scale_lr|base_lr|linear_?scal|lr_scale|LinearLR|effective_batch|OneCycle", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the learning rate."""
    if not code.calls(DDP) or not code.calls(INIT) or _KNOWS.search(code.text) or _uses_size(code):
        return
    for call in code.calls("torch.optim.SGD", "torch.optim.sgd.SGD"):
        rate = code.argument(call, "lr", 1)
        if rate is not None and isinstance(code.constant(rate), float):
            yield Hit(
                code.span(rate),
                "This learning rate is the same for any number of ranks, while the global batch grows with them: with "
                "SGD it is usually multiplied by the world size, with a warm-up.",
            )


def _uses_size(code: Code) -> bool:
    """True if a rate or batch size is multiplied or divided by the number of ranks."""
    for node in code.nodes(ast.BinOp):
        if isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv):
            for size, other in ((node.left, node.right), (node.right, node.left)):
                if _is_size(code, size) and (isinstance(other, ast.Constant) or _SCALED.search(code.source_of(other))):
                    return True
    return any(_is_size(code, n.value) and _SCALED.search(code.source_of(n.target)) for n in code.nodes(ast.AugAssign))


def _is_size(code: Code, node: ast.expr) -> bool:
    return is_size(code, node) or "world" in dotted_name(node)
