"""Compares the curves of two runs: time of a step, throughput and loss, against limits that a pipeline sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from dtdebug.errors import UsageError
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.recorded.curves.curve import Curve, spell
from dtdebug.recorded.curves.read import read_curves
from dtdebug.recorded.curves.series import is_running_total
from dtdebug_taxonomy.model.status import Status

_WARM, _LEAST, _LAST = 5, 5, 0.1
"""First steps that are left out of times, values that are needed, share of the last common steps whose loss counts."""


class Compared(NamedTuple):
    """One quantity of both runs."""

    what: str
    before: float
    after: float
    ratio: float
    """Ratio by which the second run is worse: above 1 it is slower, or its loss higher."""
    limit: float | None
    over: str
    """Basis of the figures."""

    @property
    def failed(self) -> bool:
        """True if the limit is exceeded."""
        return self.limit is not None and not self.ratio <= self.limit


def compare(left: str, right: str, max_step_time: float | None, max_loss: float | None) -> list[Compared]:
    """Return what can be compared.

    Raises:
        UsageError: a run holds no curves, or not those that a limit is set for.

    """
    runs = [_read(left), _read(right)]
    found = []
    pace = _pace(runs, max_step_time)
    if pace is not None:
        found.append(pace)
    elif max_step_time is not None:
        raise UsageError(_missing("step times or throughput", (left, right), runs, ("step_time", "throughput")))
    loss = _loss(runs, max_loss)
    if loss is not None:
        found.append(loss)
    elif max_loss is not None:
        raise UsageError(_missing("losses at the same steps", (left, right), runs, ("loss",)))
    if not found:
        raise UsageError(
            f"{one_line(left, 100)} and {one_line(right, 100)} have no curve in common: a step's time, throughput, or "
            f"a loss in {_LEAST} steps"
        )
    return found


def _read(path: str) -> list[Curve]:
    curves = read_curves([path]).curves
    if not curves:
        raise UsageError(f"{one_line(path, 200)}: holds no curve; give logs, event files, CSV or metric files of a run")
    return [c for c in curves if not c.mixed]


def _missing(what: str, names: Sequence[str], runs: Sequence[list[Curve]], kinds: Sequence[str]) -> str:
    lacks = [name for name, run in zip(names, runs, strict=True) if not any(c.kind in kinds for c in run)]
    return f"{one_line(lacks[0] if lacks else names[0], 200)}: no {what} can be read; the limit can't be checked"


def _pace(runs: Sequence[list[Curve]], limit: float | None) -> Compared | None:
    for kind in ("step_time", "throughput"):
        values = [_longest(run, kind) for run in runs]
        names = [c.name.name for c in values if c is not None]
        if len(names) < len(values):
            continue
        both = [c.finite()[1][_WARM:] for c in values if c is not None]
        if min(map(len, both)) < _LEAST or any(map(is_running_total, both)):
            continue
        before, after = (median(part) for part in both)
        if before <= 0 or after <= 0:
            continue
        ratio = after / before if kind == "step_time" else before / after
        what = "step time" if kind == "step_time" else names[0]
        return Compared(what, before, after, ratio, limit, f"medians of {len(both[0])} and {len(both[1])} values")
    return None


def _longest(run: Sequence[Curve], kind: str) -> Curve | None:
    return max((c for c in run if c.kind == kind and not c.name.held_out), key=len, default=None)


def _loss(runs: Sequence[list[Curve]], limit: float | None) -> Compared | None:
    pair = [_longest(run, "loss") for run in runs]
    if pair[0] is None or pair[1] is None:
        return None
    rows = [dict(zip(c.steps, c.values, strict=True)) for c in pair if c is not None]
    common = sorted(set(rows[0]) & set(rows[1]))
    if len(common) < _LEAST:
        return None
    last = common[-max(_LEAST, int(_LAST * len(common))) :]
    levels = [median(v if math.isfinite(v := row[s]) else math.inf for s in last) for row in rows]
    ratio = levels[1] / levels[0] if levels[0] > 0 else (1.0 if levels[1] <= levels[0] else math.inf)
    if math.isinf(levels[1]):
        ratio = math.inf
    over = f"median of the last {len(last)} common steps, to {pair[0].unit} {last[-1]:g}"
    return Compared("loss", levels[0], levels[1], ratio, limit, over)


def sentence(row: Compared) -> str:
    """Return one line on a quantity."""
    unit = " s" if row.what == "step time" else ""
    word = {True: "exceeds", False: "is within"}[row.failed]
    limit = f", {word} the limit {row.limit:g}" if row.limit is not None else ""
    return clean(
        f"{row.what} {spell(row.before)}{unit} -> {spell(row.after)}{unit}, times {row.ratio:.3f}{limit} ({row.over})"
    )


def as_json(rows: Sequence[Compared]) -> dict[str, Any]:
    """Return the JSON form."""
    failed, limited = any(row.failed for row in rows), any(row.limit is not None for row in rows)
    status: Status = "exceeded" if failed else "healthy" if limited else "no_failure"
    return {
        "status": status, "passed": not failed,
        "compared": [
            {
                "what": clean(r.what), "before": _number(r.before), "after": _number(r.after),
                "ratio": _number(r.ratio), "limit": r.limit, "failed": r.failed, "over": r.over,
            }
            for r in rows
        ],
    }  # fmt: skip


def _number(value: float) -> float | str:
    return round(value, 9) if math.isfinite(value) else spell(value)
