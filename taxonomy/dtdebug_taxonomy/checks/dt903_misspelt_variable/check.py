"""Misspelt names of the variables that start-up and device choice depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.near_names import distance, nearest
from dtdebug_taxonomy.knowledge import facts
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source, Variable

_NAMES = frozenset(
    {
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"),
        *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
        *("TORCH_DISTRIBUTED_DEBUG", "TORCH_CPP_LOG_LEVEL", "PYTORCH_CUDA_ALLOC_CONF", "OMP_NUM_THREADS"),
        *("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "HOROVOD_TIMELINE", "HOROVOD_FUSION_THRESHOLD"),
        *("TOKENIZERS_PARALLELISM", "TORCH_CUDA_ARCH_LIST", "TORCHELASTIC_ERROR_FILE"),
    }
)
_MEANT = {
    "MASTER_ADDRESS": "MASTER_ADDR",
    "TORCH_DISTRIBUTED_DETAIL": "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_DISTRIBUTED_DEBUG_LEVEL": "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_DIST_DEBUG": "TORCH_DISTRIBUTED_DEBUG",
    "PYTORCH_DISTRIBUTED_DEBUG": "TORCH_DISTRIBUTED_DEBUG",
    "TORCH_CUDA_ALLOC_CONF": "PYTORCH_CUDA_ALLOC_CONF",
    "CUDA_ALLOC_CONF": "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONFIG": "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOCATOR_CONF": "PYTORCH_CUDA_ALLOC_CONF",
    "CUDA_DEVICE_VISIBLE": "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICES_VISIBLES": "CUDA_VISIBLE_DEVICES",
    "CUDA_VISIBLE_GPUS": "CUDA_VISIBLE_DEVICES",
    "CUDA_VISIBLE_GPU": "CUDA_VISIBLE_DEVICES",
    "GLOO_SOCKET_INTERFACE": "GLOO_SOCKET_IFNAME",
    "OMP_THREADS": "OMP_NUM_THREADS",
}
"""Frequent wrong names that differ from the right one by more than a typo."""
_LIKE_IT = frozenset(
    {
        *("NODE_RANK", "GLOBAL_RANK", "ROLE_RANK", "NVIDIA_VISIBLE_DEVICES", "WORLD_SIZES", "LOCAL_RANKS"),
        "MLP_SOCKET_IFNAME",  # of Volcano Engine's platform, like MLP_WORKER_0_HOST
    }
)
_MAYBE = re.compile(r"CUDA|MASTER|WORLD|RANK|TORCH|OMP|GLOO|TP_|HOROVOD|TOKENI|SIZE|VISIBLE|RNAK|DEVICE")
"""Words, one of which occurs in nearly every name close to a known one."""


def check(source: Source) -> Iterator[Hit]:
    """Report names that are set or read here and are a typo away from a relevant one."""
    if "_" not in source.text or not _MAYBE.search(source.text):
        return
    variables = source.variables
    used = {v.name for v in variables if not v.is_set}
    has = {v.name for v in variables}
    for variable in variables:
        meant = _nearest_name(variable)
        if meant is None or (variable.name in used and (variable.is_set or not _only_reads(source, variable))):
            continue
        if variable.name in _MEANT and meant in has:
            continue
        said = "No library reads" if variable.is_set else "No launcher sets"
        edits = [Edit(variable.span, meant)]
        if variable.name == "TORCH_DISTRIBUTED_DETAIL" and variable.value_span and variable.value == "DEBUG":
            edits.append(Edit(variable.value_span, "DETAIL"))
        yield Hit(
            variable.span,
            f"{said} {variable.name}: {meant} is meant, which stays as it was.",
            Fix(f"Write {meant}", tuple(edits)),
        )


def _only_reads(source: Source, variable: Variable) -> bool:
    """True for a program that reads a name which it never sets; a script's own variables are its own."""
    return isinstance(source, Code) and not any(v.is_set and v.name == variable.name for v in source.variables)


def _nearest_name(variable: Variable) -> str | None:
    name = variable.name
    if name in _NAMES or name in _LIKE_IT or len(name) < 8 or not name.isupper() or name.startswith("_"):
        return None  # a leading underscore marks a program's own variable
    if name in _MEANT:
        return _MEANT[name]
    torch = facts.torch_env()
    if name in torch.variables or name in torch.strings or name in torch.renamed:
        return None
    if name.startswith("TORCH_NCCL_"):
        return nearest(name, [n for n in torch.variables if n.startswith("TORCH_NCCL_")])
    bare = name.replace("_", "")
    for known in _NAMES:
        if bare == known.replace("_", "") or sorted(name.split("_")) == sorted(known.split("_")):
            return known
        most = 1 if len(known) < 15 else 2
        alike = name.rpartition("_")[2] == known.rpartition("_")[2] or name.split("_")[0] == known.split("_")[0]
        own = name == f"{known}S"  # a list of them
        vendor = name.endswith("_VISIBLE_DEVICES") and distance(name.partition("_")[0], "CUDA", 1) > 1
        if alike and not own and not vendor and not _is_anothers(name, known) and distance(name, known, most) <= most:
            return known
    return None


def _is_anothers(name: str, known: str) -> bool:
    """True if only the first words differ, by more than a typo: `OLMO_NUM_THREADS` is OLMo's own."""
    mine, _, rest = name.partition("_")
    first, _, others = known.partition("_")
    return rest == others and sorted(mine) != sorted(first) and distance(mine, first, 1) > 1
