"""Compares a step of ranks that share sharded layers with that of one process which has them whole."""

from __future__ import annotations

import math
import sys
from typing import Any

from dtdebug.experiments.parity.inside import compare, recompute
from dtdebug.experiments.parity.inside.entries import entries
from dtdebug.experiments.parity.inside.model_group import join, sharded_rows
from dtdebug.experiments.parity.inside.recompute import Again
from dtdebug.experiments.parity.inside.window import Window

_CLOSE = 1e-4
"""Relative difference of two digests of one output."""
_RIGHT, _ROUNDING = 1e-3, {"torch.bfloat16": 5e-2, "torch.float16": 5e-2}
"""Relative difference of a gradient that sums in another order may make, at least."""
_NOISE = 1e-5
"""Size of a gradient, as a part of the largest, below which it is rounding."""
_MOST_BIASES = 32


def compare_groups(window: Window, given: dict[int, Any], *, fits: bool) -> dict[str, Any]:
    """Return the rows for a judge: the reduction between groups, and what differs within them."""
    joined = join(given)
    if not joined.given:
        return {"uncovered": "groups of ranks that the first rank does not know"}
    window.weights |= joined.weights
    names = groups_of(given[min(given)]["group"])
    again = recompute.recompute(window, joined.given, names) if fits else None
    found: dict[str, Any] = {} if again is not None else {"unrepeated": "memory"}
    found["compared"] = compare.compare(joined.given, again, list(joined.given), window.order, sharded=False)
    told: dict[str, Any] = {"group": given[min(given)]["group"], "inputs": joined.inputs}
    found["layers"] = told
    if again is None:
        return found
    found["again"] = again.told | {"matches": {}}
    if not again.grads:
        return found
    told["drawn"] = any(run.drawn for run in again.runs.values())
    told["summed"] = any(run.summed for run in again.runs.values())
    told["output"] = _part_of_output(joined.seen, again)
    if told["output"]:
        biases = _biases(window, joined.given, joined.seen, names, told["output"])
        if biases and _share_of(window, joined.given, names, biases[0]) * len(told["group"]) < 1 + _RIGHT:
            again, told["output"] = _with_shares(window, joined.given, names, biases), []
        else:
            told["biases"] = biases
    common = next((f for row in found["compared"] for f in row["factor"] if f), 1.0)
    for lead, apart in joined.apart.items():
        told.setdefault("apart", []).extend(sharded_rows(apart, _telling(again.grads.get(lead, {})), common))
    rows = [row for lead in joined.given for row in _gradients(joined.given[lead]["rows"], again, lead)]
    order = {name: place for place, name in enumerate(window.order)}
    called = [name for members in joined.seen.values() for call in members[0] for name, _ in call]
    used = {name: place for place, name in enumerate(called)}  # a model may hold its layers in another order
    told.get("apart", []).sort(key=lambda row: used.get(row[0].rpartition(".")[0], -1))
    told["scaled"] = joined.scaled
    told["gradients"] = sorted((row for row in rows if row[1]), key=lambda row: order.get(row[0], 0))
    told["agree"] = [len(rows), max((row[3] for row in rows if not row[1]), default=0.0)]
    return found


def _telling(grads: dict[str, Any]) -> dict[str, Any]:
    """Return the gradients without those that are rounding, such as that of a bias which a norm takes away."""
    largest = max((float(g.norm()) for g in grads.values()), default=0.0)
    return {name: g for name, g in grads.items() if float(g.norm()) > _NOISE * largest}


def _gradients(rows: dict[str, Any], again: Again, lead: int) -> list[list[Any]]:
    """Return (parameter, how its gradient differs or "", factor, relative difference)."""
    found: list[list[Any]] = []
    for name, right in _telling(again.grads.get(lead, {})).items():
        own = [v for v in rows[name]["local"] if v is not None] if name in rows else []
        if not own:
            continue
        actual, size = sum(own[1:], own[0]), float(right.norm())
        off = float((actual - right).norm()) / size
        limit = max(_ROUNDING.get(rows[name]["dtype"], _RIGHT), 8 * again.change.get(name, 0.0) / size)
        factor = float((actual * right).sum()) / size**2
        exact = float((actual - factor * right).norm()) <= limit * size * max(1.0, abs(factor))
        found.append([name, "" if off <= limit else "factor" if exact else "other", factor, off])
    return found


def groups_of(ranks: list[int]) -> list[str]:
    """Return the names of all groups that have exactly these ranks."""
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    return [
        c10d._world.pg_names[group]  # noqa: SLF001 - torch has no other list of them
        for group, held in c10d._world.pg_group_ranks.items()  # noqa: SLF001
        if sorted(held) == sorted(ranks)
    ]


def _part_of_output(seen: dict[int, list[list[list[tuple[str, float]]]]], again: Again) -> list[Any]:
    """Return the module from which on no output is that of one process: call and name; [] if the model's is."""
    for lead, members in seen.items():
        for number, rows in enumerate(again.runs[lead].seen if lead in again.runs else []):
            held = [member[number] for member in members if number < len(member)]
            if len(held) != len(members) or any([n for n, _ in row] != [n for n, _ in rows] for row in held):
                return []
            apart: list[Any] = []
            for place, (name, value) in enumerate(rows):
                digests = [row[place][1] for row in held]
                if any(math.isnan(d) for d in digests):  # parts of a sum: nothing is known
                    continue
                same = any(_close(d, value) for d in (*digests, sum(digests)))
                apart = [] if same else apart or [number, name]
            if apart:
                return apart
    return []


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= _CLOSE * max(abs(a), abs(b))


def _biases(window: Window, given: dict[int, Any], seen: dict[int, Any], names: list[str], at: list[Any]) -> list[str]:
    """Return the biases that count once for each member: with them multiplied, all outputs are the ranks'."""
    lead = next(iter(given))
    kept = dict(window.weights)
    scaled: list[str] = []
    try:
        while at and len(scaled) < _MOST_BIASES:
            root = window.calls.calls[at[0]].root
            bias = dict(root.named_parameters()).get(own := f"{at[1]}.bias".lstrip("."))
            name = window.prefix_of(root) + own
            if bias is None or name in scaled:
                return []
            scaled.append(name)
            window.weights[name] = kept.get(name, bias.detach()) * len(given[lead]["group"])
            once = recompute.recompute(window, {lead: given[lead]}, names)
            if not once.grads:
                return []
            at = _part_of_output({lead: seen[lead]}, once)
    finally:
        window.weights = kept
    return [] if at else scaled


def _share_of(window: Window, given: dict[int, Any], names: list[str], bias: str) -> float:
    """Return how often a module of the copy adds its bias to its output: 1, or less if the program divides it."""
    module, lead, kept = bias.rpartition(".")[0], next(iter(given)), dict(window.weights)
    outputs = []
    value = kept[bias] if bias in kept else dict(window.calls.calls[0].root.named_parameters())[bias].detach()
    try:
        for times in (1, 0):
            window.weights[bias] = value * times
            run = recompute.run_once(window, window.calls.calls, given[lead]["calls"], names, watch=(module,))
            outputs.append(run.watched[module].outputs)
    finally:
        window.weights = kept
    if not outputs[0]:
        return 1.0
    added = (outputs[0][0] - outputs[1][0]).reshape(-1, len(value)).mean(0)
    return float((added * value).sum() / (value * value).sum())


def _with_shares(window: Window, given: dict[int, Any], names: list[str], biases: list[str]) -> Again:
    """Return the recomputation with biases of which each rank adds a share, and their gradients by those of outputs."""
    kept = dict(window.weights)
    times = len(given[next(iter(given))]["group"])
    for bias in biases:
        value = kept[bias] if bias in kept else dict(window.calls.calls[0].root.named_parameters())[bias].detach()
        window.weights[bias] = value * times
    try:
        again = recompute.recompute(window, given, names)
        for lead, row in given.items():
            watch = tuple(bias.rpartition(".")[0] for bias in biases)
            run = recompute.run_once(window, window.calls.calls, row["calls"], names, watch=watch)
            for bias, module in zip(biases, watch, strict=True):
                gradient = run.watched[module].gradient
                if gradient is not None and lead in again.grads:
                    again.grads[lead][bias] = entries(gradient)
        return again
    finally:
        window.weights = kept
