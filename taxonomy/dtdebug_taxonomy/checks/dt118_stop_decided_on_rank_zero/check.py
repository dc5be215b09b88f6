"""Values that only the main process changes and by which every rank decides whether to continue."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.stepping import agrees, is_agreed, synchronising_calls
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.guards import Guard, guards
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_FLAGS = {"should_stop", "should_training_stop", "should_epoch_stop"}
"""Flags that each rank's loop in the trainers of Lightning and Transformers reads locally."""


def check(code: Code) -> Iterator[Hit]:
    """Report the name by which the loop is left, or the place that sets a trainer's flag."""
    if code.role == "test":
        return
    yield from _flags(code)
    loops = dict.fromkeys(
        a for t in synchronising_calls(code) for a in code.ancestors(t) if isinstance(a, ast.For | ast.While)
    )
    for condition in code.nodes(ast.If) if loops else ():
        if not isinstance(condition.body[-1], ast.Break) or guards(code).around(condition, early=False):
            continue
        loop = next((a for a in code.ancestors(condition) if isinstance(a, ast.For | ast.AsyncFor | ast.While)), None)
        if loop not in loops or guards(code).test(condition.test) or is_agreed(code, [condition.test]):
            continue
        for name in code.inside(condition.test, ast.Name):
            if (guard := _changed_on_one(code, name, loop)) is not None:
                line = code.text.place(code.span(guard.node).start).line
                yield Hit(
                    code.span(name),
                    f"{name.id} changes {guard.test.words} (line {line}), so the ranks leave this loop at different "
                    "times: those that go on wait for the others.",
                )
                break


def _changed_on_one(code: Code, name: ast.Name, loop: ast.AST) -> Guard | None:
    """Return the condition on the main process under which a loop last assigns a name."""
    for binding in code.bound(name):
        if binding.how != "assign" or loop not in set(code.ancestors(binding.node)):
            continue
        around = [g for g in guards(code).around(binding.node, early=False) if loop in set(code.ancestors(g.node))]
        guard = next((g for g in around if _is_main(g)), None)
        if guard is not None and not any(agrees(code, c) for c in code.inside(guard.node, ast.Call)):
            return guard
    return None


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
