"""Learning rates of Horovod's optimizer that do not depend on the number of ranks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import OPTIMIZERS
from dtdebug_taxonomy.checks.shared.ranks_seen import is_started_here
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_KNOWS = re.compile(r"WarmupCallback|Adasum|scale_lr|lr_scal|warm_?up", re.IGNORECASE)
_KERAS = re.compile(
    r"^(tensorflow\.)?keras\.optimizers\.(legacy\.)?[A-Z]\w+$|^tensorflow\.(compat\.v1\.)?train\.\w+Optimizer$"
)


def check(code: Code) -> Iterator[Hit]:
    """Report the learning rate."""
    wrapped = horovod.calls(code, "DistributedOptimizer")
    if not wrapped or not is_started_here(code) or _KNOWS.search(code.text) or _uses_size(code):
        return
    prefix = horovod.prefix(code, wrapped[0])
    for call in code.nodes(ast.Call):
        name = code.name(call.func)
        if name in OPTIMIZERS:
            rate = code.argument(call, "lr", 1)
        elif _KERAS.match(name):
            rate = code.argument(call, "learning_rate", 0) or code.argument(call, "lr")
        else:
            continue
        if rate is None or not (isinstance(code.constant(rate), int | float) or dotted_name(rate)):
            continue
        end = code.span(rate).end
        fix = (
            Fix("Multiply it by the number of ranks", (Edit(Span(end, end), f" * {prefix}size()"),)) if prefix else None
        )
        yield Hit(
            code.span(rate),
            "This learning rate is the same for any number of ranks, while the global batch grows with them: it is "
            "usually multiplied by hvd.size().",
            fix,
        )


def _uses_size(code: Code) -> bool:
    """True if a size is used in a product or quotient, or passed to another function."""
    for call in horovod.calls(code, "size", "local_size"):
        up = code.parent[call]
        if isinstance(up, ast.BinOp | ast.IfExp | ast.AugAssign) or (isinstance(up, ast.Assign) and up.value is call):
            return True
        if isinstance(up, ast.Call) and code.name(up.func) in {"int", "float", "max", "min", "math.sqrt", "np.sqrt"}:
            return True
    return False
