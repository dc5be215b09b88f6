"""Value "auto" in a configuration that is passed directly to deepspeed.initialize()."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.python.code import Code

_FILL_IT_IN = ("transformers", "accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "trl", "peft")
_SECTIONS = ("optimizer.params.", "scheduler.params.")
_SWITCHES = ("fp16.enabled", "bf16.enabled")


def check(code: Code) -> Iterator[Hit]:
    """Report values that DeepSpeed itself reads, in programs without a library that replaces "auto"."""
    if not code.calls("deepspeed.initialize", "deepspeed.init_inference") or code.imports_any(*_FILL_IT_IN):
        return
    if any(name.startswith(".") for name in code.imports.values()):
        return
    for root in configurations(code):
        for path, entry in root.walk():
            if entry.node.value != "auto":
                continue
            if path in _SWITCHES:
                yield Hit(
                    entry.node.span,
                    'DeepSpeed drops a value "auto" here, so that it stays off: Transformers and Accelerate fill it '
                    "in, deepspeed.initialize() does not.",
                )
            elif "." not in path or path.startswith(_SECTIONS):
                yield Hit(
                    entry.node.span,
                    'Transformers and Accelerate replace "auto" by a number, deepspeed.initialize() does not: it fails '
                    f"when it computes with {path.rpartition('.')[2]}.",
                )
