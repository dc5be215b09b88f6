"""The table of what is looked for in curves, and the findings of one reading, the gravest first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from dtdebug.recorded.curves import judge_counters, judge_events, judge_loss, judge_memory, judge_rest
from dtdebug.recorded.curves.curve import Curve, Owner
from dtdebug.recorded.curves.finding import ORDER, CurveFinding, FindingKind

_RISES: frozenset[FindingKind] = frozenset({"rises_with_rate", "diverges", "jumps"})
_SHORTEST, _LONGEST = 3, 20_000
"""Values from which a curve is judged, and up to which each of them is: of longer ones, each n-th."""


def findings(curves: Sequence[Curve]) -> list[CurveFinding]:
    """Return what is wrong with the curves of one reading."""
    usable = [curve for curve in curves if len(curve) >= _SHORTEST and not curve.mixed]
    groups: dict[tuple[Owner], list[Curve]] = defaultdict(list)
    for curve in usable:
        groups[curve.owner,].append(curve)
    found: list[CurveFinding] = []
    for group in groups.values():
        found += _of_one(group)
    by_name: dict[tuple[str, str, bool], list[Curve]] = defaultdict(list)
    for curve in usable:
        if curve.owner.rank is not None:
            by_name[curve.name.name, curve.owner.run, curve.name.held_out].append(curve)
    for (_name, _run, held_out), same in by_name.items():
        if same[0].kind == "loss" and not held_out and len({c.owner.rank for c in same}) == len(same):
            found += judge_rest.ranks_differ(same)
    memory: dict[tuple[str, str], list[Curve]] = defaultdict(list)
    for curve in usable:
        if curve.kind == "memory":
            memory[curve.name.name, curve.owner.run].append(curve.thinned(_LONGEST))
    for same in memory.values():
        if len({c.owner.rank for c in same}) == len(same):
            found += judge_memory.memory_grows(same)
    printed = {(name, run): len({c.owner.rank for c in same}) for (name, run, _), same in by_name.items()}
    joined = judge_rest.join_ranks(found, printed)
    return sorted(joined, key=lambda row: ORDER.index(row.kind))


def _of_one(group: Sequence[Curve]) -> list[CurveFinding]:
    """Return the findings on the curves of one process or run; what follows from another finding is left out."""
    by = _by_kind(group)
    losses, held_out = _losses(by)
    found: list[CurveFinding | None] = [
        judge_loss.not_finite(curve, group)
        for curve in _broken_last_first([*losses, *held_out, *by["part"], *by["grad_norm"]])
    ]
    found = _first_only(found)
    group = [curve.thinned(_LONGEST) for curve in group]
    by = _by_kind(group)
    losses, held_out = _losses(by)
    whole, rates = losses[:1], by["lr"]
    broken = any(row is not None for row in found)
    found += [judge_rest.scale_at_floor(curve) for curve in by["loss_scale"]]
    if not broken:
        found += _rises(losses, rates, [*rates, *by["batch_size"]])
        risen = any(row is not None and row.kind in _RISES for row in found)
        found += [] if risen else [judge_loss.spike(curve) for curve in whole]
        found += [judge_loss.vanishes(curve, by["grad_norm"], rates) for curve in whole]
        found += [judge_loss.does_not_move(curve, rates) for curve in whole]
        found += [judge_rest.overfits(curve, losses) for curve in held_out[:1]]
    found += judge_counters.start_over(by["count"], whole)
    found += [judge_loss.repeats(curve) for curve in whole] + [judge_events.runs_differ(group)]
    if not any(rate.values[-1] for rate in rates[1:]):  # some groups of parameters may be frozen
        found += [judge_rest.zero_rate(curve, losses) for curve in rates[:1]]
    if not rates and whole:
        found += [row for curve in by["zero"] if (row := judge_loss.always_zero(curve, whole[0]))][:1]
    paces = [c for c in by["step_time"] if len(c) > 2][:1] or by["throughput"][:1]
    found += [judge_rest.slower(curve, by["batch_size"]) for curve in paces]
    return [row for row in found if row is not None]


def _rises(losses: Sequence[Curve], rates: Sequence[Curve], settings: Sequence[Curve]) -> list[CurveFinding | None]:
    """Return what made a loss rise: what is known to have happened at a step comes before that it rises."""
    whole = losses[:1]
    growth = [row for curve in whole if (row := judge_events.rises_with_rate(curve, rates))]
    resumed = [row for curve in whole if (row := judge_events.resumed_from_start(curve))]
    resumed = resumed or [row for curve in rates[:1] if (row := judge_events.rate_starts_over(curve))]
    jumped = [row for curve in whole if (row := judge_events.jumps(curve, rates, settings))]
    diverged = [row for curve in losses if (row := judge_loss.diverges(curve, rates))]
    if growth:
        return [*growth]
    if resumed:
        return [*resumed, *diverged]
    if jumped and (not diverged or jumped[0].cause):
        return [*jumped]
    return [*diverged]


def _first_only(found: Sequence[CurveFinding | None]) -> list[CurveFinding | None]:
    """Return the first finding alone: terms of a loss, and its norm, are NaN with it."""
    return [next((row for row in found if row is not None), None)]


def _broken_last_first(curves: list[Curve]) -> list[Curve]:
    """Return curves that end in NaN before others: a loss may be printed as 0 where its gradient is NaN."""
    return sorted(curves, key=lambda curve: math.isfinite(curve.values[-1]))


def _by_kind(group: Sequence[Curve]) -> dict[str, list[Curve]]:
    by: dict[str, list[Curve]] = defaultdict(list)
    for curve in group:
        by[curve.kind].append(curve)
    return by


def _losses(by: dict[str, list[Curve]]) -> tuple[list[Curve], list[Curve]]:
    """Return the losses of the training, the longest first, and those of evaluations."""
    train = sorted((c for c in by["loss"] if not c.name.held_out), key=len, reverse=True)
    return train, [c for c in by["loss"] if c.name.held_out]
