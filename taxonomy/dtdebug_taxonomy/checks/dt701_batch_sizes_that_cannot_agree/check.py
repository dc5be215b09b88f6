"""DeepSpeed configurations whose batch sizes no number of processes makes equal."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.launch import launches
from dtdebug_taxonomy.source.shell import Script
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.tree import Node, number

_TOTAL, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


def check(source: Source) -> Iterator[Hit]:
    """Divides the whole by its parts; where the script itself starts the processes, compares with their number."""
    for root in configurations(source):
        if root.get("elasticity") is not None:
            continue
        total, micro, steps = (_whole(root.get(key)) for key in (_TOTAL, _MICRO, _STEPS))
        entry = root.entry(_TOTAL)
        if entry is None or not total or not (micro or steps):
            continue
        part = (micro or 1) * (steps or 1)
        written = " times ".join(f"{key} {value}" for key, value in ((_MICRO, micro), (_STEPS, steps)) if value)
        if total % part:
            yield Hit(
                entry.node.span,
                f"train_batch_size {total} is not a multiple of {written}, so it equals their product for no number of "
                "processes: deepspeed.initialize() fails.",
            )
            continue
        processes = _processes(source) if isinstance(source, Script) and not _split(root) else None
        if processes and ((micro and steps and total != part * processes) or total % (part * processes)):
            yield Hit(
                entry.node.span,
                f"With the {processes} processes that this script starts, {written} gives {part * processes} and not "
                f"train_batch_size {total}: deepspeed.initialize() fails.",
            )


def _whole(node: Node | None) -> int | None:
    value = number(node)
    return int(value) if value is not None and 0 < value < float("inf") and value == int(value) else None


def _split(root: Node) -> bool:
    """Tensor, pipeline or sequence parallelism: fewer processes share the batch than are started."""
    keys = ("tensor_parallel", "pipeline", "sequence_parallel_size", "autotuning", "expert_parallel")
    return any(root.get(key) is not None for key in keys)


def _processes(script: Script) -> int | None:
    """The processes that all launches of a script start, if they start the same number on one node."""
    found = set()
    for launch in launches(script):
        if any(
            k in w.text for w in launch.arguments for k in ("model-parallel", "model_parallel", "pipe", "tp", "-mp")
        ):
            return None
        many = [launch.number(script, n) for n in ("--nnodes", "--num_nodes", "--num_machines") if n in launch.options]
        if any(m != 1 for m in many) or "--hostfile" in launch.options:
            return None
        found.add(launch.number(script, "--nproc-per-node", "--num_gpus", "--num_processes"))
    return found.pop() if len(found) == 1 else None
