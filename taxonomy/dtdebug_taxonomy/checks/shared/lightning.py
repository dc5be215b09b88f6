"""Lightning: devices that a Trainer requests, logged metrics and monitored metrics."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.checks.shared.arguments import keyword
from dtdebug_taxonomy.source.python.code import Code

_TRAINER = ("pytorch_lightning.Trainer",)
_MONITOR = 2
"""Position of ModelCheckpoint's `monitor` argument."""


def many_devices(code: Code) -> bool:
    """True if a Lightning Trainer of this file requests several devices."""
    for call in code.calls(*_TRAINER):
        strategy = code.constant(code.argument(call, "strategy"))
        if isinstance(strategy, str) and strategy.startswith(("ddp", "fsdp", "deepspeed")):
            return True
        devices = code.argument(call, "devices") or code.argument(call, "gpus")
        count = code.constant(devices)
        if (isinstance(count, int) and count > 1) or count in {"-1", "auto"} or _is_minus_one(devices):
            return True
        nodes = code.constant(code.argument(call, "num_nodes"))
        if isinstance(nodes, int) and nodes > 1:
            return True
    return False


def _is_minus_one(node: ast.expr | None) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def watched_names(code: Code) -> set[str]:
    """Return the names passed as `monitor`."""
    found: set[object] = set()
    for call in code.nodes(ast.Call):
        last = code.name(call.func).rsplit(".", 1)[-1]
        if (given := keyword(call, "monitor")) is not None:
            found.add(code.constant(given.value))
        elif last == "EarlyStopping" and call.args:
            found.add(code.constant(call.args[0]))
        elif last == "ModelCheckpoint" and len(call.args) > _MONITOR:
            found.add(code.constant(call.args[_MONITOR]))
    for table in code.nodes(ast.Dict):
        found |= {
            code.constant(v)
            for k, v in zip(table.keys, table.values, strict=True)
            if k and code.constant(k) == "monitor"
        }
    return {f for f in found if isinstance(f, str)}


def logged_names(code: Code, call: ast.Call) -> set[str]:
    """Return the names that a call of `log` or `log_dict` logs."""
    first = code.argument(call, "name", 0) or code.argument(call, "dictionary", 0)
    keys = first.keys if isinstance(first, ast.Dict) else [first]
    return {k for key in keys if isinstance(k := code.constant(key), str)}
