"""Compares the ranks' notes, and reports violated training invariants.

Only values that must be equal are compared: replicas of one model, settings of ranks that train one model. Nothing is
concluded from missing records.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.experiments.invariants.judge import (
    dist_calls,
    gradient_averaging,
    inputs,
    lost_work,
    model_state,
    no_exchange,
    pipeline_stages,
    replica_weights,
    samples,
    shards,
    step_effect,
)
from dtdebug.experiments.invariants.read_records import Rank
from dtdebug_taxonomy.model.training import Violation

_MOST = 64


def judge(ranks: Sequence[Rank]) -> tuple[Violation, ...]:
    """Return the violations, the earliest first, each invariant once for each place."""
    found: dict[tuple[str, tuple[int, ...], int], Violation] = {}
    for look in (
        *replica_weights.LOOKS,
        *gradient_averaging.LOOKS,
        *step_effect.LOOKS,
        *no_exchange.LOOKS,
        *lost_work.LOOKS,
        *inputs.LOOKS,
        *samples.LOOKS,
        *pipeline_stages.LOOKS,
        *shards.LOOKS,
        *dist_calls.LOOKS,
        *model_state.LOOKS,
    ):
        for violation in look(ranks):
            found.setdefault((violation.invariant, violation.ranks, violation.line), violation)
    rows = _causes(sorted(found.values(), key=lambda v: v.step))
    return tuple(rows[:_MOST])


_FOLLOWS = {
    "replicas-differ": ("steps-differ", "hyperparameters-differ", "not-reduced", "weights-not-finite"),
    "weights-changed-on-some-ranks": ("steps-differ",),
    "randomness-alike": ("inputs-alike",),
    "order-differs": ("order-repeats", "inputs-alike"),
    "samples-shared": ("inputs-alike", "order-differs", "workers-repeat", "batch-repeats"),
    "order-repeats": ("batch-repeats",),
    "samples-left-out": ("inputs-alike",),
    "step-without-gradients": ("not-reduced",),
    "weights-unchanged": ("step-without-gradients", "not-reduced"),
    "augmentation-alike": ("inputs-alike", "workers-alike"),
    "groups-differ": ("mesh-differs",),
    "gradients-differ": ("not-reduced", "read-before-wait"),
    "gradient-not-finite": ("loss-not-finite",),
    "parameters-outside-plan": ("replicated-differs",),
    "never-reduced": (
        "parameters-outside-ddp",
        "steps-discarded",
        "reduced-to-one-rank",
        "work-dropped",
        "read-before-wait",
        "not-a-member",
        "no-process-group",
        "not-reduced",
        "step-without-gradients",
    ),
}
"""Violation -> violations that explain it: it is not reported next to them."""


def _causes(rows: list[Violation]) -> list[Violation]:
    names = {row.invariant for row in rows}
    return [row for row in rows if names.isdisjoint(_FOLLOWS.get(row.invariant, ()))]
