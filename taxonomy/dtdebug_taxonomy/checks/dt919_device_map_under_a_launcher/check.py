"""Models spread over all devices, in a program that a launcher starts as several processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.programs import started_several_times
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.shell.script import Script

_SPREADS = {"auto", "balanced", "balanced_low_0", "sequential"}
_KEEP = {"get_peft_model", "prepare_model_for_kbit_training", "prepare_model_for_int8_training"}
"""Functions that return the model passed to them."""


def check(script: Script) -> Iterator[Hit]:
    """Report the launcher."""
    for launch, name, line in started_several_times(script, _spread_and_trained):
        yield Hit(
            launch.place,
            f"Each of these processes loads its model over all devices (device_map in line {line} of "
            f"{name}): the trainer refuses that with several processes, or they fill "
            "one another's devices.",
        )


def _spread_and_trained(code: Code) -> ast.Call | None:
    """Return the call that loads a model over all devices, if a trainer gets it."""
    for call in code.methods("from_pretrained"):
        spread = code.constant(code.argument(call, "device_map"))
        if spread not in _SPREADS or any(isinstance(a, ast.If | ast.IfExp) for a in _near(code, call)):
            continue
        if any(_comes_from(code, model, call) for model in _trained_models(code)):
            return call
    return None


def _near(code: Code, node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes around a node, except tests of `__name__`."""
    for up in code.ancestors(node):
        if not (
            isinstance(up, ast.If) and isinstance(up.test, ast.Compare) and dotted_name(up.test.left) == "__name__"
        ):
            yield up


def _trained_models(code: Code) -> Iterator[ast.expr]:
    """Yield the models passed to trainers and wrappers."""
    for call in code.nodes(ast.Call):
        last = code.name(call.func).rpartition(".")[2]
        if last.endswith("Trainer") and code.methods("train"):
            model = code.argument(call, "model", 0)
        elif last == "DistributedDataParallel":
            model = code.argument(call, "module", 0)
        else:
            continue
        if model is not None:
            yield model


def _comes_from(code: Code, model: ast.expr, made: ast.Call, depth: int = 4) -> bool:
    if model is made:
        return True
    if isinstance(model, ast.Call) and code.name(model.func).rpartition(".")[2] in _KEEP and model.args and depth:
        return _comes_from(code, model.args[0], made, depth - 1)
    if not dotted_name(model) or not depth:
        return False
    return any(v is not None and v is not model and _comes_from(code, v, made, depth - 1) for v in code.values(model))
