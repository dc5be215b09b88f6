"""Programs with NCCL in which no rank sets its device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.counting import starts_its_ranks
from dtdebug_taxonomy.checks.shared.environment import settings
from dtdebug_taxonomy.checks.shared.fixing import choose_device
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.source.python.code import Code

_CHOOSES = (
    "set_device",
    "set_visible",
    "device_id",
    "torch.cuda.device(",
    "init_distributed_mode",
    "setup_distributed",
)
_CHOOSERS = ("transformers.Trainer", "transformers.TrainingArguments", "trl.", "accelerate.Accelerator")
"""Classes that set the device themselves."""


def check(code: Code) -> Iterator[Hit]:
    """Report the call that sets up the process group."""
    for call in code.calls(INIT):
        if "nccl" not in str(code.constant(code.argument(call, "backend", 0))).lower():
            continue
        if code.argument(call, "device_id", 8) is not None or code.has_unpacking(call):
            continue
        if any(word in code.text for word in _CHOOSES) or not _current_device(code):
            return
        if any(full.startswith(_CHOOSERS) for full in code.imports.values()):
            return
        if any(s.variable == "CUDA_VISIBLE_DEVICES" for s in settings(code)):
            return
        yield Hit(
            code.span(call),
            "Nothing sets the rank's device before NCCL is used: tensors on 'cuda' of all ranks land on device 0, and "
            "NCCL hangs or reports a duplicate GPU.",
            None if starts_its_ranks(code) else choose_device(code, call),
        )


def _current_device(code: Code) -> bool:
    """True if something is put on the current device, without a number."""
    if any(not c.args and not c.keywords for c in code.methods("cuda")):
        return True
    given = [code.argument(c, "device", 0) for c in code.methods("to")]
    given += [code.argument(c, "type", 0) for c in code.calls("torch.device")]
    given += [k.value for k in code.nodes(ast.keyword) if k.arg == "device"]
    given += [b for node in given if isinstance(node, ast.IfExp) for b in (node.body, node.orelse)]
    return any(isinstance(node, ast.Constant) and node.value == "cuda" for node in given)
