"""Accelerate files that name a DeepSpeed file and set keys that belong in that."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.config.document import Config

_TWICE = frozenset({
    *("gradient_accumulation_steps", "gradient_clipping", "zero_stage", "zero3_save_16bit_model"),
    *("offload_optimizer_device", "offload_param_device", "offload_param_nvme_path", "offload_optimizer_nvme_path"),
})  # fmt: skip
"""Keys that Accelerate refuses together with a DeepSpeed file."""


def check(document: Config) -> Iterator[Hit]:
    """Report the keys."""
    for root in document.roots:
        section, kind = root.get("deepspeed_config"), root.get("distributed_type")
        named = section.get("deepspeed_config_file") if section is not None else None
        if (
            section is None
            or named is None
            or named.value in {None, "none"}
            or kind is None
            or kind.value != "DEEPSPEED"
        ):
            continue
        for key, entry in section.entries.items():
            if key in _TWICE:
                yield Hit(
                    entry.key_span,
                    f"{key} stands beside deepspeed_config_file: Accelerate refuses to start, since it belongs in that "
                    "file alone.",
                )
        precision = root.entry("mixed_precision")
        if precision is not None and precision.node.value is not None:
            yield Hit(
                precision.key_span,
                "mixed_precision stands beside deepspeed_config_file: Accelerate refuses to start, since fp16 or bf16 "
                "belongs in that file, unless the command gives --mixed_precision itself.",
            )
