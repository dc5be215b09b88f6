"""Optimizers not wrapped by Horovod, in programs that initialise it and train."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared import horovod
from dtdebug_taxonomy.checks.shared.names import OPTIMIZERS
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

_EXCHANGES = re.compile(
    r"Distributed(Optimizer|GradientTape|Trainer)|allreduce|all_reduce|Adasum|DistributedDelta", re.IGNORECASE
)
_KERAS = re.compile(
    r"^(tensorflow\.)?keras\.optimizers\.(legacy\.)?[A-Z]\w+$|^tensorflow\.(compat\.v1\.)?train\.\w+Optimizer$"
)
_TRAINS = ("backward", "fit", "minimize", "apply_gradients", "fit_generator")


def check(code: Code) -> Iterator[Hit]:
    """Report the optimizer."""
    starts = horovod.calls(code, "init")
    if not starts or _EXCHANGES.search(code.text) or not code.methods(*_TRAINS):
        return
    for call in _optimizers(code):
        name = next((horovod.prefix(code, s) for s in starts), "")
        span = code.span(call)
        fix = None
        if name:
            edits = (
                Edit(Span(span.start, span.start), f"{name}DistributedOptimizer("),
                Edit(Span(span.end, span.end), ")"),
            )
            fix = Fix("Wrap it in DistributedOptimizer", edits)
        yield Hit(
            span,
            "Nothing exchanges gradients between Horovod's ranks: with this optimizer each rank trains a model of its "
            "own on its part of the data.",
            fix,
        )


def _optimizers(code: Code) -> Iterator[ast.Call]:
    yield from code.calls(*OPTIMIZERS)
    for call in code.nodes(ast.Call):
        if _KERAS.match(code.name(call.func)):
            yield call
