"""DeepSpeed configurations whose batch sizes are inconsistent for every number of processes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.configured import deepspeed_file, setting
from dtdebug_taxonomy.checks.shared.programs import processes, unknown_words
from dtdebug_taxonomy.source.config.tree import Node, number
from dtdebug_taxonomy.source.deepspeed import configurations
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.shell.launch import launches
from dtdebug_taxonomy.source.shell.script import Script
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.started_programs import started_programs

_TOTAL, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"

_SHARED = ("tensor_parallel", "sequence_parallel_size", "autotuning", "expert_parallel")
_OTHER_RANKS = re.compile(
    r"PipelineModule|LayerSpec|\bmpu\b|tensor_parallel|sequence_parallel|HfArgumentParser|elasticity"
)
"""Signs that fewer processes share the batch, or that the configuration is changed."""


def check(source: Source) -> Iterator[Hit]:
    """Compare the total with the product of its parts, and with the number of processes that the script starts."""
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
        ranks = _processes(source) if isinstance(source, Script) and not _split(root) else None
        if ranks and _differs(root, ranks):
            yield Hit(
                entry.node.span,
                f"With the {ranks} processes that this script starts, {written} gives {part * ranks} and not "
                f"train_batch_size {total}: deepspeed.initialize() fails.",
            )
    if isinstance(source, Script):
        yield from _in_the_file(source)


def _differs(root: Node, ranks: int) -> bool:
    """True if the sizes are inconsistent for this number of processes, though maybe not for another."""
    total, micro, steps = (_whole(root.get(key)) for key in (_TOTAL, _MICRO, _STEPS))
    part = (micro or 1) * (steps or 1) * ranks
    return total is not None and ((bool(micro and steps) and total != part) or total % part > 0)


def _in_the_file(script: Script) -> Iterator[Hit]:
    """Report a configuration that the command passes to a program that uses it unchanged."""
    for start in started_programs(script):
        file, launch = deepspeed_file(script, start), start.launch
        ranks = processes(script, start) if file is not None else None
        if file is None or launch is None or not ranks or start.code is None or unknown_words(start.arguments):
            continue
        root, size = file.roots[0], setting(file, _TOTAL)
        parts = [n for n in (_whole(root.get(_MICRO)), _whole(root.get(_STEPS))) if n]
        if size is None or not parts or root.get("elasticity") is not None or _split(root, *_SHARED):
            continue
        if _differs(root, ranks) and _takes_as_it_is(start.code):
            yield Hit(
                launch.place,
                f"This starts {ranks} process{'es' * (ranks > 1)}, with which {file.path.rpartition('/')[2]} gives "
                f"{' x '.join(map(str, (*parts, ranks)))} and not train_batch_size {size.node.value} ({size.where}): "
                "deepspeed.initialize() fails.",
            )


def _takes_as_it_is(code: Code) -> bool:
    """True if `deepspeed.initialize` reads the file that its command names, and all processes share the batch."""
    calls = code.calls("deepspeed.initialize")
    if not calls or _OTHER_RANKS.search(code.text):
        return False
    return all(_named_by_arguments(code.argument(c, n)) for c in calls for n in ("config", "config_params"))


def _named_by_arguments(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Attribute) and node.attr == "deepspeed_config")


def _whole(node: Node | None) -> int | None:
    value = number(node)
    return int(value) if value is not None and 0 < value < float("inf") and value == int(value) else None


def _split(root: Node, *keys: str) -> bool:
    """True for tensor, pipeline or sequence parallelism: fewer processes share the batch than are started."""
    return any(root.get(key) is not None for key in keys or (*_SHARED, "pipeline"))


def _processes(script: Script) -> int | None:
    """Return the number of processes that every launch of a script starts on one node; None if it varies."""
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
