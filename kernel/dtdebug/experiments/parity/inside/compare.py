"""Compares reduced gradients with the mean of the ranks' own, and finds the weights that explain a difference."""

from __future__ import annotations

import sys
from typing import Any

from dtdebug.experiments.parity.inside.entries import entries
from dtdebug.experiments.parity.inside.parts import merge
from dtdebug.experiments.parity.inside.recompute import Again
from dtdebug.experiments.parity.inside.window import Window

_EPS = {"torch.float64": 2.3e-16, "torch.float32": 1.2e-7, "torch.bfloat16": 7.9e-3, "torch.float16": 9.8e-4}
_FLOOR = 16
_FEW, _MOST = 4, 64
"""Values for each rank below which shares are not solved for, and the largest share that is believed."""
_NOISE = 2e-6
"""Size of a gradient, as a part of the largest, below which it is rounding: that of a bias before a batch norm."""
_ROWS, _COLUMNS = 512, 32


def compare(
    given: dict[int, Any], again: Again | None, ranks: list[int], order: list[str], *, sharded: bool
) -> list[dict[str, Any]]:
    """Return a row for each parameter: how the gradient after the backward pass, and at the step, is made up.

    `weights` are the shares of the ranks' own gradients, which are 1 / number of ranks in a mean.
    """
    names = [n for n in order if n in next(iter(given.values()))["rows"]]
    rows = []
    for name in names[:_ROWS]:
        row = _parameter(name, given, again, ranks, sharded=sharded)
        if row is not None:
            rows.append(row)
    largest = max((row["size"] for row in rows), default=0.0)
    return [row for row in rows if row["size"] > _NOISE * largest or not row.get("finite", True)]


def _parameter(
    name: str, given: dict[int, Any], again: Again | None, ranks: list[int], *, sharded: bool
) -> dict[str, Any] | None:
    torch: Any = sys.modules["torch"]
    held = {r: given[r]["rows"][name] for r in given if name in given[r]["rows"]}
    if not held:
        return None
    locals_ = {r: _sum(held[r]["local"]) if r in held else None for r in ranks}
    size = next((len(v) for v in locals_.values() if v is not None), 0)
    if not size:
        return None
    nothing = torch.zeros(size, dtype=torch.float64)
    own = torch.stack([locals_[r] if locals_[r] is not None else nothing for r in ranks])
    dtype = next(iter(held.values()))["dtype"]
    eps = _EPS.get(dtype, 1.2e-7)
    scale = float(own.norm(dim=1).mean())
    limit = _FLOOR * eps * scale + 8 * (again.change.get(name, 0.0) if again is not None else 0.0)
    if sharded and any(v is not None and bool(torch.isnan(v).any()) for v in (h["after"] for h in held.values())):
        limit = max(limit, _FLOOR * eps * scale)
    row: dict[str, Any] = {"name": name, "size": scale, "tolerance": limit / scale if scale else 0.0}
    row["cleared"] = held[min(held)]["cleared"]
    row["local"] = [r for r in ranks if locals_[r] is None]
    if not bool(torch.isfinite(own).all()):
        row["finite"] = False
        return row
    for when in ("after", "step"):
        row[when] = _explain(held, when, own, ranks, limit, sharded=sharded)
        if row[when]["is"] == "other":
            row[when] |= _by_pass(held, when, ranks, limit)
    row["factor"] = _factor(held, limit, sharded=sharded)
    return row


def _sum(values: list[Any]) -> Any:
    found = [v for v in values if v is not None]
    return sum(found[1:], found[0]) if found else None


def _explain(
    held: dict[int, Any], when: str, own: Any, ranks: list[int], limit: float, *, sharded: bool
) -> dict[str, Any]:
    """Return the state of one moment: `mean`, `own`, `sum`, `weights` or `other`."""
    torch: Any = sys.modules["torch"]
    seen = {r: _less(held[r][when], held[r]["base"]) for r in held if held[r][when] is not None}
    if not seen:
        return {"is": "none"}
    if sharded and next(iter(seen.values())).isnan().any():
        seen = {min(seen): merge(list(seen.values()))}
    if any(not bool(torch.isfinite(v).all()) for v in seen.values()):
        return {"is": "not finite"}
    mean = own.mean(dim=0)
    worst = max(float((v - mean).norm()) for v in seen.values())
    same = all(bool((v == next(iter(seen.values()))).all()) for v in seen.values())
    if worst <= limit:
        return {"is": "mean", "off": worst}
    if all(float((seen[r] - own[ranks.index(r)]).norm()) <= limit for r in seen) and len(seen) > 1:
        return {"is": "own", "off": worst, "same": same}
    weights, rest = {}, 0.0
    for r, value in seen.items():
        solved = torch.linalg.lstsq(own.T, value.unsqueeze(1), rcond=1e-9, driver="gelsd").solution.squeeze(1)
        rest = max(rest, float((own.T @ solved - value).norm()))
        weights[str(r)] = [round(float(w), 6) for w in solved]
    common = float((next(iter(seen.values())) * mean).sum() / max(1e-300, float((mean * mean).sum())))
    if own.shape[1] < _FEW * len(ranks):  # any shares would explain so few values
        return {"is": "few", "off": worst, "same": same, "factor": common}
    even = max(float((v - common * mean).norm()) for v in seen.values()) <= limit * max(1.0, abs(common))
    solves = rest <= 4 * limit and all(abs(w) <= _MOST for row in weights.values() for w in row)
    found = {"is": "factor" if even else "weights" if solves else "other", "off": worst, "same": same}
    return {**found, "factor": common, "weights": weights, "rest": rest}


def _by_pass(held: dict[int, Any], when: str, ranks: list[int], limit: float) -> dict[str, Any]:
    """Return the share of each backward pass of each rank, if these explain the gradient of one rank."""
    torch: Any = sys.modules["torch"]
    names: list[list[int]] = []
    columns: list[Any] = []
    for r in ranks:
        for number, value in enumerate(held[r]["local"] if r in held else []):
            if value is not None and len(columns) < _COLUMNS:
                names.append([r, number])
                columns.append(value)
    value = held[min(held)][when]
    if len(columns) <= len(ranks) or value is None or bool(value.isnan().any()):
        return {}
    value = _less(value, held[min(held)]["base"])
    table = torch.stack(columns).T
    solved = torch.linalg.lstsq(table, value.unsqueeze(1), rcond=1e-9, driver="gelsd").solution.squeeze(1)
    if float((table @ solved - value).norm()) > 4 * limit or table.shape[0] < 2 * table.shape[1]:
        return {}
    return {"is": "passes", "passes": [[*n, round(float(w), 6)] for n, w in zip(names, solved, strict=True)]}


def _less(value: Any, base: Any) -> Any:
    return value if base is None else value - base


def _factor(held: dict[int, Any], limit: float, *, sharded: bool) -> list[float | None]:
    """Return by which number each rank's gradient was multiplied between the backward pass and the step."""
    found: list[float | None] = []
    for row in held.values():
        before, now = row["after"], row["step"]
        if before is None or now is None:
            found.append(None)
            continue
        before, now = before.nan_to_num(), now.nan_to_num()
        size = float((before * before).sum())
        factor = float((before * now).sum()) / size if size else 1.0
        even = float((now - factor * before).norm()) <= max(limit, 1e-5 * float(now.norm()))
        found.append(factor if even else None)
    return found


def weight_sums(window: Window, optimizer: Any, *, placed: bool = False) -> dict[str, float]:
    """Return one number for the values of each whole parameter, or of this rank's part of each sharded layer."""
    found: dict[str, float] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            name = window.names.get(id(parameter))
            if name is None or len(found) >= _ROWS:
                continue
            layer = window.layers.get(name) is parameter
            copied = layer and all(p.is_replicate() for p in parameter.placements)
            if placed and layer and not copied:
                found[name] = float(entries(parameter.to_local()).sum())
            elif not placed and (copied or not hasattr(parameter, "device_mesh")):
                found[name] = float(entries(parameter.to_local() if copied else parameter).sum())
    return found
