"""Names what differs between the steps of all ranks and those of one process, and the factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dtdebug.experiments.parity.judge import layers, reduction, replicas, scale
from dtdebug.experiments.parity.judge.pipelines import of_pipelines
from dtdebug.experiments.parity.judge.view import StepView, views
from dtdebug.experiments.parity.record_types import Row
from dtdebug_taxonomy.model.training import Violation

_LOOKS: tuple[Callable[[StepView], Iterator[Violation]], ...] = (
    replicas.absent,
    replicas.weights,
    replicas.modes,
    layers.inputs,
    layers.outputs,
    layers.group_sums,
    layers.group_factors,
    layers.loss_share,
    reduction.unreduced,
    reduction.loose,
    reduction.lost,
    reduction.cleared_between,
    scale.summed_loss,
    scale.scaled,
    scale.sums,
    reduction.shares,
    reduction.between_ranks,
    scale.rank_loss,
    replicas.samples,
)
_RESTS: tuple[Callable[[StepView], Iterator[Violation]], ...] = (
    layers.otherwise,
    replicas.otherwise,
    reduction.unexplained,
    replicas.updates,
)
"""Looks that say what differs without its cause: only where the others say nothing."""


def judge(rows: Sequence[Row]) -> tuple[Violation, ...]:
    """Return what differs at the first step at which something does, the cause first."""
    for view in views(rows):
        found = list(_of_step(view))
        if found:
            return tuple(found)
    return of_pipelines(rows)


def _of_step(view: StepView) -> Iterator[Violation]:
    found: dict[str, Violation] = {}
    for look in _LOOKS:
        for one in look(view):
            found.setdefault(one.invariant, one)
    for look in () if found else _RESTS:
        for one in look(view):
            found.setdefault(one.invariant, one)
    yield from found.values()
