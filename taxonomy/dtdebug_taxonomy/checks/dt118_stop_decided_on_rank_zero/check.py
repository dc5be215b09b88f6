"""Values that only the main process changes and by which every rank decides whether to continue."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.decisions import of_check
from dtdebug_taxonomy.checks.shared.stepping import agrees
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_FLAGS = {"should_stop", "should_training_stop", "should_epoch_stop"}
"""Flags that each rank's loop in the trainers of Lightning and Transformers reads locally."""


def check(code: Code) -> Iterator[Hit]:
    """Report the condition by which the loop is left, or the place that sets a trainer's flag."""
    if code.role == "test":
        return
    yield from _flags(code)
    for found in of_check(code, "DT118"):
        yield Hit(
            code.span(found.node),
            "Only some ranks change this, by a condition on the rank, so the ranks leave this loop at different times: "
            "those that go on wait for the others.",
        )


def _is_main(guard: Guard) -> bool:
    return guard.test.value == "0" and guard.test.equal and guard.test.which in {"global", "local"}


def _flags(code: Code) -> Iterator[Hit]:
    """Yield `trainer.should_stop = True` by rank 0 in a callback."""
    for assign in code.nodes(ast.Assign):
        target = assign.targets[0]
        if (
            not isinstance(target, ast.Attribute)
            or target.attr not in _FLAGS
            or code.constant(assign.value) is not True
        ):
            continue
        guard = next((g for g in guards(code).around(assign) if _is_main(g)), None)
        home = code.function(assign)
        if guard is None or home is None or not isinstance(home, FUNCTIONS):
            continue
        if any(agrees(code, c) and not _only_waits(c) for c in code.inside(home, ast.Call)):
            continue
        yield Hit(
            code.span(target),
            f"Each rank looks at its own {target.attr}, and this sets it {guard.test.words}: the others train on and "
            "wait for it in their next step.",
        )


def _only_waits(call: ast.Call) -> bool:
    return getattr(call.func, "attr", "") in {"barrier", "wait_for_everyone"}
