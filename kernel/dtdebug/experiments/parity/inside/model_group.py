"""Joins the notes of ranks that share one model by tensor parallelism, so that each group is compared as one rank."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from dtdebug.experiments.parity.inside.parts import merge, whole_of
from dtdebug.experiments.repeat.tensors import tensors_in

_ALIKE = 1e-4
"""Relative difference within which gradients of two ranks of a group are one."""
_RIGHT = 1e-3
"""The same for a gradient and a sum, share or multiple of it."""


class Joined(NamedTuple):
    """Notes by the first rank of each group, and what the members of a group do not have in common."""

    given: dict[int, Any]
    weights: dict[str, Any]
    """Whole weights of the sharded layers, of the first group."""
    apart: dict[int, dict[str, dict[str, list[Any]]]]
    """First rank -> name -> "local", "after", "step": the values of each member."""
    inputs: list[int]
    """Members of the first group whose inputs differ where none is declared a part."""
    seen: dict[int, list[list[list[tuple[str, float]]]]]
    """First rank -> members -> calls -> (module, digest of its output)."""
    scaled: list[tuple[str, list[float]]]
    """(parameter, factor of each member between backward pass and step) of the first group, where they differ."""


def join(given: dict[int, Any]) -> Joined:
    """Return the notes of all ranks as those of their groups; none where the ranks of a group are not all there."""
    found = Joined({}, {}, {}, [], {}, [])
    for lead in sorted({row["group"][0] for row in given.values()}):
        members = [given[r] for r in sorted(given) if given[r]["group"][0] == lead]
        if [r for r in sorted(given) if given[r]["group"][0] == lead] != sorted(members[0]["group"]):
            return Joined({}, {}, {}, [], {}, [])
        found.apart[lead] = {}
        rows = {}
        for name in members[0]["rows"]:
            row = _row([m["rows"][name] for m in members], found.apart[lead], name)
            if row is not None:
                rows[name] = row
                found.scaled.extend(
                    _member_factors(name, [m["rows"][name] for m in members]) if not found.given else ()
                )
        calls = [_call([m["calls"][n] for m in members]) for n in range(len(members[0]["calls"]))]
        found.given[lead] = {**members[0], "rows": rows, "calls": calls}
        found.seen[lead] = [[call["seen"] for call in m["calls"]] for m in members]
        if len(found.given) == 1:
            for name in members[0]["layers"]:
                whole = whole_of(m["layers"][name] for m in members)
                if whole is not None:
                    found.weights[name] = whole
            if not any(m["cuts"] for m in members):
                found.inputs.extend(_others(members))
    return found


def _row(rows: list[dict[str, Any]], apart: dict[str, dict[str, list[Any]]], name: str) -> dict[str, Any] | None:
    """Return the notes of one parameter; None if each member has a whole gradient of its own."""
    partial = any(row["partial"] for row in rows)
    locals_ = [_total(row["local"]) for row in rows]
    whole = [v for v in locals_ if v is not None and not bool(v.isnan().any())]
    if not partial and len(whole) == len(rows) and not _alike(whole):
        apart[name] = {"local": locals_, "after": [r["after"] for r in rows], "step": [r["step"] for r in rows]}
        return None
    passes = max(len(row["local"]) for row in rows)
    return {
        **rows[0],
        **{k: merge([row[k] for row in rows], partial=partial) for k in ("base", "after", "step")},
        "local": [
            merge([row["local"][n] if n < len(row["local"]) else None for row in rows], partial=partial)
            for n in range(passes)
        ],
    }


def _member_factors(name: str, rows: list[dict[str, Any]]) -> list[tuple[str, list[float]]]:
    """Return the members' factors of one gradient that all have whole and alike, where these differ."""
    after, step = [row["after"] for row in rows], [row["step"] for row in rows]
    if any(v is None or bool(v.isnan().any()) for v in (*after, *step)) or not _alike(after) or _alike(step):
        return []
    factors = [_factor([now], before) for now, before in zip(step, after, strict=True)]
    return [] if None in factors else [(name, [f for f in factors if f is not None])]


def _total(values: list[Any]) -> Any:
    held = [v for v in values if v is not None]
    return sum(held[1:], held[0]) if held else None


def _alike(values: list[Any]) -> bool:
    limit = _ALIKE * max(float(v.norm()) for v in values)
    return all(float((v - values[0]).norm()) <= limit for v in values[1:])


def _call(calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a call with the gradients of its outputs, which may be parts, of all members."""
    passes = max(len(call["grads"]) for call in calls)
    grads = []
    for number in range(passes):
        held = [call["grads"][number] if number < len(call["grads"]) else {} for call in calls]
        grads.append({index: [part for row in held for part in row.get(index, ())] for index in held[0]})
    return {**calls[0], "grads": grads}


def _others(members: list[dict[str, Any]]) -> list[int]:
    """Return the members whose inputs are not those of the first."""
    torch: Any = sys.modules["torch"]

    def inputs(member: dict[str, Any]) -> list[Any]:
        return [t for call in member["calls"] for t in tensors_in((call["args"], call["kwargs"]))]

    first = inputs(members[0])
    return [
        member["rank"]
        for member in members[1:]
        if len(now := inputs(member)) == len(first)
        and not all(
            a.shape == b.shape and torch.allclose(a, b, equal_nan=True) for a, b in zip(first, now, strict=True)
        )
    ]


def sharded_rows(apart: dict[str, dict[str, list[Any]]], again: dict[str, Any], common: float) -> list[list[Any]]:
    """Return (parameter, state, factor) of gradients that each member has whole and otherwise than the others.

    `common` is by what the program multiplies the gradients that agree, as clipping does. The state is `summed` if the
    program makes them one process's until the step, `own` if each keeps its share of a sum, `factor` if they are a
    multiple of it, else `other`.
    """
    found: list[list[Any]] = []
    for name, values in apart.items():
        right = again.get(name)
        if right is None or not float(right.norm()):
            continue
        factors = [_factor(values[when], right) for when in ("after", "step")]
        if any(f is not None and (abs(f - 1) < _RIGHT or abs(f - common) < _RIGHT * common) for f in factors):
            found.append([name, "summed", 1.0])
        elif factors[1] is not None and factors[1]:
            found.append([name, "factor", factors[1] / common])
        elif float((sum(values["local"]) - right).norm()) <= _RIGHT * float(right.norm()):
            found.append([name, "own", 1.0])
        else:
            found.append([name, "other", 1.0])
    return found


def _factor(values: list[Any], right: Any) -> float | None:
    """Return the factor of all members' gradients to the right one, None if there is no common one."""
    if any(v is None for v in values) or not _alike(values):
        return None
    factor = float((values[0] * right).sum() / (right * right).sum())
    return factor if float((values[0] - factor * right).norm()) <= _RIGHT * float(values[0].norm()) else None
