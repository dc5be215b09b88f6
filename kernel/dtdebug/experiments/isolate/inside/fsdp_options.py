"""Observes and changes options of FSDP, of the class and of `fully_shard`.

Nothing here imports torch: each function gets the module that the program has just imported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dtdebug.experiments.isolate.inside.record_writer import PartNotes


def wrapper(module: ModuleType, notes: PartNotes) -> None:
    """Patch the class FullyShardedDataParallel."""
    kind: Any = module.FullyShardedDataParallel
    strategies: Any = module.ShardingStrategy
    original = kind.__init__

    def change(given: dict[str, Any]) -> None:
        if given.get("sharding_strategy") in (None, strategies.FULL_SHARD):
            _option(given, "fsdp.reshard", "sharding_strategy", strategies.SHARD_GRAD_OP, notes)
        if given.get("mixed_precision") is not None:
            _option(given, "fsdp.precision", "mixed_precision", None, notes)
        if getattr(given.get("cpu_offload"), "offload_params", False):
            _option(given, "fsdp.offload", "cpu_offload", None, notes)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - takes its place
        _call(original, (self, *args), kwargs, change)

    kind.__init__ = __init__


def function(module: ModuleType, notes: PartNotes) -> None:
    """Patch the function `fully_shard`."""
    original: Any = module.fully_shard

    def change(given: dict[str, Any]) -> None:
        if given.get("reshard_after_forward") is not False:
            _option(given, "fsdp.reshard", "reshard_after_forward", False, notes)
        policy: Any = given.get("mp_policy")
        if any(getattr(policy, name, None) is not None for name in ("param_dtype", "reduce_dtype", "output_dtype")):
            _option(given, "fsdp.precision", "mp_policy", type(policy)(), notes)
        if type(given.get("offload_policy")).__name__ == "CPUOffloadPolicy":
            _option(given, "fsdp.offload", "offload_policy", module.OffloadPolicy(), notes)

    @functools.wraps(original)
    def fully_shard(*args: Any, **kwargs: Any) -> Any:
        return _call(original, args, kwargs, change)

    module.fully_shard = fully_shard  # type: ignore[attr-defined]


def _call(
    original: Any, args: tuple[Any, ...], kwargs: dict[str, Any], change: Callable[[dict[str, Any]], None]
) -> Any:
    try:
        bound = inspect.signature(original).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the original raises it
        return original(*args, **kwargs)
    change(bound.arguments)
    return original(*bound.args, **bound.kwargs)


def _option(given: dict[str, Any], knob: str, name: str, value: Any, notes: PartNotes) -> None:
    notes.note("saw", knob)
    if notes.wants(knob):
        given[name] = value
        notes.note("set", knob)
