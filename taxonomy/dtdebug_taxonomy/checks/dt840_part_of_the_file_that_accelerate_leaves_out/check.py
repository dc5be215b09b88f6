"""Sections of Accelerate's file for another way of starting than the selected one."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.source.config.document import Config
from dtdebug_taxonomy.source.config.tree import Node, number

_SECTIONS = {
    "fsdp_config": ("FSDP", "--use_fsdp"),
    "deepspeed_config": ("DEEPSPEED", "--use_deepspeed"),
    "megatron_lm_config": ("MEGATRON_LM", "--use_megatron_lm"),
}
"""Section -> type that reads it, and option that selects that type."""
_TYPES = frozenset({"NO", "MULTI_GPU", *(kind for kind, _ in _SECTIONS.values())})
_OWN = ("machine_rank", "num_machines", "compute_environment", "downcast_bf16", "main_training_function")
"""Keys, one of which identifies a file of Accelerate."""


def check(document: Config) -> Iterator[Hit]:
    """Report the number of processes, or the section."""
    for root in document.roots:
        kind, many = root.get("distributed_type"), root.get("num_processes")
        name = "NO" if kind is not None and kind.value is False else kind.value if kind is not None else None
        is_known = isinstance(name, str) and name in _TYPES
        if kind is None or not is_known or not any(root.get(key) is not None for key in _OWN):
            continue
        asked = number(many)
        if name == "NO" and many is not None and asked is not None and asked > 1:
            yield Hit(
                many.span,
                f"distributed_type is NO, so Accelerate starts one process and not {asked:g}, unless the command says "
                "--multi_gpu or names another way.",
                Fix("Start several processes", (Edit(kind.inner, "MULTI_GPU"),), safe=False),
            )
        for key, (wanted, option) in _SECTIONS.items():
            entry = root.entry(key)
            if entry is not None and name != wanted and _says(entry.node):
                yield Hit(
                    entry.key_span,
                    f"distributed_type is {name}, so {key} has no effect, unless the command says {option}.",
                    severity="hint",
                )


def _says(section: Node) -> bool:
    return any(e.node.value not in ("", None, "none") for e in section.entries.values())
