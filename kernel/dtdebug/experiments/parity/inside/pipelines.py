"""Repeats the steps of a pipeline with whole batches: each rank runs its stages, and hands results on through files."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dtdebug.experiments.parity.inside.entries import entries
from dtdebug.experiments.parity.inside.losses import terms_of
from dtdebug.experiments.repeat.module_copy import ModuleCopy
from dtdebug.experiments.repeat.one_process import one_process
from dtdebug.experiments.repeat.tensors import tensors_in, with_tensors

_RIGHT = 1e-3
_NOISE = 1e-5
"""Size of a gradient, as a part of the largest of a stage, below which it is rounding."""
_ROWS = 512


class Pass:
    """One call of a schedule, with the batch that it was given."""

    def __init__(self, schedule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        kept = {name: value for name, value in kwargs.items() if name not in {"losses", "return_outputs"}}
        self.schedule = schedule
        self.args, self.kwargs = with_tensors(args, _keep), with_tensors(kept, _keep)
        self.target = self.kwargs.pop("target", None)


def patch_schedules(module: ModuleType, begun: Callable[[Pass], None], ended: Callable[[Any], None]) -> None:
    """Call these around each step of a schedule."""
    for name in ("PipelineScheduleSingle", "PipelineScheduleMulti"):
        kind = getattr(module, name)
        kind.step = _around(kind.step, begun, ended)


def _around(step: Any, begun: Callable[[Pass], None], ended: Callable[[Any], None]) -> Any:
    @functools.wraps(step)
    def run(schedule: Any, *args: Any, **kwargs: Any) -> Any:
        begun(Pass(schedule, args, kwargs))
        result = step(schedule, *args, **kwargs)
        ended(schedule)
        return result

    return run


def stages_of(schedule: Any) -> list[Any]:
    """Return this rank's stages, in the order of the model."""
    held = getattr(schedule, "_stages", None) or [schedule._stage]  # noqa: SLF001 - torch has no other name for it
    return sorted(held, key=lambda stage: int(stage.stage_index))


def gradients(schedule: Any) -> dict[str, Any]:
    """Return the chosen entries of the gradients of this rank's stages, by stage and name."""
    return {
        f"{stage.stage_index}.{name}": entries(p.grad)
        for stage in stages_of(schedule)
        for name, p in list(stage.submod.named_parameters())[:_ROWS]
        if p.grad is not None
    }


def limit_of(passes: list[Pass], world: int) -> str:
    """Return why these passes can't be repeated, "" if they can."""
    schedule = passes[0].schedule
    stages = stages_of(schedule)
    modules = [m for s in stages for m in s.submod.modules()]
    if any(p.schedule is not schedule for p in passes):
        return "a step of several pipelines"
    if stages[0].group_size != world:
        return "a pipeline with replicas of its stages"
    if any(hasattr(p, "device_mesh") for s in stages for p in s.submod.parameters()):
        return "a pipeline of sharded stages"
    if any("BatchNorm" in type(m).__name__ for m in modules):
        return "a pipeline with batch norm, which takes its statistics from each micro-batch"
    return ""


def repeat_passes(
    passes: list[Pass],
    after: dict[str, Any],
    now: dict[str, Any],
    write: Callable[[str, Any], None],
    read: Callable[[str], Any],
) -> dict[str, Any]:
    """Return how the gradients of this rank's stages are made up of those of whole batches.

    `after` are the gradients at the end of the last pass, `now` those at the step. `write` and `read` hand values on
    to the rank that has the next stage, by name.
    """
    schedule = passes[0].schedule
    found: list[dict[str, Any]] = []
    told: dict[str, Any] = {
        "stages": [int(s.stage_index) for s in stages_of(schedule)],
        "of": int(stages_of(schedule)[0].num_stages),
        "micro": int(schedule._n_microbatches),  # noqa: SLF001
        "scales": bool(schedule.scale_grads),
        "passes": len(passes),
    }
    for number, one in enumerate(passes):
        whole, terms, drawn = _whole(one, number, write, read)
        found.append(whole)
        told["drawn"] = told.get("drawn", False) or drawn
        told["terms"] = told.get("terms") or terms
    told["gradients"] = [row for name in after if (row := _row(name, after[name], found))]
    factors = [_factor(now[name], value) for name, value in after.items() if name in now]
    told["between"] = [f for f in factors if f is not None][:1] if None not in factors else []
    return told


def _whole(
    one: Pass, number: int, write: Callable[[str, Any], None], read: Callable[[str], Any]
) -> tuple[dict[str, Any], list[dict[str, Any]], bool]:
    """Return the gradients of a whole batch, the terms of its loss, and whether random numbers were drawn."""
    torch: Any = sys.modules["torch"]
    stages = stages_of(one.schedule)
    random = torch.get_rng_state()
    terms: list[dict[str, Any]] = []
    done: dict[int, tuple[Any, list[Any], list[Any]]] = {}
    with torch.enable_grad():
        for stage in stages:
            place = int(stage.stage_index)
            given = one.args if stage.is_first else tuple(
                t.requires_grad_(t.is_floating_point()) for t in read(f"{number}-forward-{place}")
            )  # fmt: skip
            copied = ModuleCopy(stage.submod).module
            with one_process():
                outputs = copied(*given, **one.kwargs)
                results = [one.schedule._loss_fn(outputs, one.target)] if stage.is_last else list(tensors_in(outputs))  # noqa: SLF001
            done[place] = copied, list(given), results
            if stage.is_last:
                terms = terms_of(results[0])
            else:
                write(f"{number}-forward-{place + 1}", [t.detach() for t in results])
        for stage in reversed(stages):
            place = int(stage.stage_index)
            _, given, results = done[place]
            grads = [torch.ones_like(results[0])] if stage.is_last else read(f"{number}-backward-{place}")
            pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None and r.requires_grad]
            with one_process():
                torch.autograd.backward([r for r, _ in pairs], [g for _, g in pairs])
            if not stage.is_first:
                write(f"{number}-backward-{place - 1}", [t.grad for t in given])
    found = {
        f"{place}.{name}": entries(p.grad)
        for place, (copied, _, _) in done.items()
        for name, p in copied.named_parameters()
        if p.grad is not None
    }
    return found, terms, not torch.equal(random, torch.get_rng_state())


def _row(name: str, value: Any, whole: list[dict[str, Any]]) -> list[Any] | None:
    """Return (parameter, shares of the passes, relative rest), None for a gradient that is rounding."""
    torch: Any = sys.modules["torch"]
    columns = [one[name] for one in whole if name in one]
    largest = max((float(v.norm()) for one in whole for v in one.values()), default=0.0)
    if len(columns) != len(whole) or min(float(c.norm()) for c in columns) <= _NOISE * largest:
        return None
    table = torch.stack(columns).T
    solved = torch.linalg.lstsq(table, value.unsqueeze(1), driver="gelsd").solution.squeeze(1)
    rest = float((table @ solved - value).norm()) / max(float(value.norm()), float(columns[0].norm()))
    return [name, [float(w) for w in solved], rest]


def _factor(now: Any, before: Any) -> float | None:
    """Return by which number a gradient was multiplied, None if by none."""
    size = float((before * before).sum())
    if not size:
        return 1.0
    factor = float((now * before).sum()) / size
    return factor if float((now - factor * before).norm()) <= _RIGHT * size**0.5 else None


def _keep(tensor: Any) -> Any:
    return tensor.detach().clone()
