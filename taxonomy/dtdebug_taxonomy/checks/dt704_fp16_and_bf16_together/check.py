"""DeepSpeed configurations that enable both 16-bit formats."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.config.tree import Node
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source


def check(source: Source) -> Iterator[Hit]:
    """Report `enabled` of fp16 if bf16 is enabled too."""
    for root in configurations(source):
        fp16 = root.get("fp16.enabled")
        bf16 = root.get("bf16.enabled") or root.get("bfloat16.enabled")
        if fp16 is not None and bf16 is not None and _on(fp16) and _on(bf16):
            off = "False" if isinstance(source, Code) else "false"
            literal = source.cut(fp16.span).lower() in {"true", "1"}
            yield Hit(
                fp16.span,
                "fp16 and bf16 are both enabled: DeepSpeed refuses the configuration.",
                Fix("Switch fp16 off", (Edit(fp16.span, off),)) if literal else None,
            )


def _on(node: Node) -> bool:
    return node.value is True or node.value == 1 or (isinstance(node.value, str) and node.value.lower() == "true")
