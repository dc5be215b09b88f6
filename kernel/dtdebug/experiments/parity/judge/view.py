"""One step as all ranks have noted it, and the words for what differs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dtdebug.experiments.parity.record_types import Compared, Explained, Facts, Loss, Row, SeenCall
from dtdebug_taxonomy.model.training import Violation

NEAR = 2e-3
"""Relative distance within which a factor is that of a cause."""
_FRACTIONS = {0.5: "half", 1 / 3: "a third", 0.25: "a quarter"}
_SAME_WEIGHTS = 1e-6


class StepView:
    """One step by the notes of all ranks."""

    def __init__(self, step: int, rows: Sequence[Row], others: Sequence[Row]) -> None:
        self.step = step
        self.members: dict[int, Facts] = {r.rank: r.facts for r in rows if r.facts is not None}
        self.facts = {r: f for r, f in self.members.items() if r == min(f.group, default=r)}
        """The facts of one rank for each model: the first rank of each tensor-parallel group."""
        self.result = next((r for r in rows if r.compared or r.missing or r.layers), None)
        self.ended = {r.rank: r.weights for r in others if r.ended == step}
        self.hooks = sorted({r.hook for r in others if r.hook})
        self.wrapped = sorted({r.wrapped for r in others if r.wrapped})
        whole = max((r.world for r in rows), default=0)
        self.world = whole // max([1, *(len(f.group) for f in self.facts.values())])
        """Number of models whose gradients are averaged."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """First rank of each model that took the step."""
        return tuple(sorted(self.facts))

    @property
    def everyone(self) -> tuple[int, ...]:
        """Ranks that took the step."""
        return tuple(sorted(self.members))

    @property
    def lead(self) -> Facts:
        """Facts of the first rank."""
        return self.facts[min(self.facts)]

    @property
    def compared(self) -> list[Compared]:
        """Parameters with finite gradients."""
        return [c for c in self.result.compared if c.finite] if self.result is not None else []

    def call_past_wrapper(self) -> SeenCall | None:
        """Return a call that trained past a wrapper."""
        calls = [c for rank in self.ranks for c in self.facts[rank].calls if c.used]
        return next((c for c in calls if c.wrapper in {"", "dtensor"}), None)

    def loss(self) -> Loss:
        """Return the last backward pass of the first rank."""
        return self.lead.losses[-1] if self.lead.losses else Loss()


def views(rows: Sequence[Row]) -> list[StepView]:
    """Return the steps that were compared, in order."""
    steps = sorted({r.step for r in rows if r.facts is not None})
    return [StepView(s, [r for r in rows if r.step == s], [r for r in rows if not r.step]) for s in steps]


def violation(  # noqa: PLR0917
    view: StepView,
    name: str,
    cause: str,
    means: str,
    fix: str,
    place: tuple[str, int] = ("", 0),
    ranks: tuple[int, ...] = (),
    *,
    sure: bool = True,
    symptom: str = "D.2.4",
    diff: str = "",
) -> Violation:
    """Return a violation at this step."""
    return Violation(
        invariant=f"parity-{name}",
        ranks=ranks or view.everyone,
        step=view.step,
        file=place[0],
        line=place[1],
        symptom=symptom,
        means=means,
        cause=cause,
        fix=fix,
        diff=diff,
        sure=sure,
    )


def unequal(sums: dict[int, dict[str, float | None]]) -> tuple[str, tuple[int, ...]]:
    """Return the first parameter whose sum differs, and the ranks that differ from the first one."""
    first = sums.get(min(sums, default=-1), {})
    for name, value in first.items():
        if value is None:
            continue
        apart = tuple(
            r
            for r, other in sorted(sums.items())
            if (now := other.get(name)) is not None and abs(now - value) > _SAME_WEIGHTS * max(1.0, abs(value))
        )
        if apart:
            return name, apart
    return "", ()


def effective(view: StepView, row: Compared) -> Explained:
    """Return the moment that counts: after the backward pass, or at the step where the program reduces by hand."""
    if row.after.state in {"mean", "factor", "weights", "passes"}:
        return row.after
    return row.step if row.step.state != "none" else row.after


def telling(view: StepView) -> list[tuple[Compared, Explained]]:
    """Return the parameters with enough values to tell shares from, or all if none has."""
    rows = [(row, effective(view, row)) for row in view.compared]
    known = [(row, how) for row, how in rows if how.state != "few"]
    return known or [(row, replace(how, state="factor")) for row, how in rows]


def differing(view: StepView) -> list[tuple[Compared, Explained]]:
    """Return the parameters whose gradient is not the mean, and how it is made up."""
    return [(row, how) for row, how in telling(view) if how.state not in {"mean", "none", "not finite"}]


def first_of(names: Sequence[str]) -> str:
    """Return the first name, and how many follow."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def factor_words(factor: float) -> str:
    """Return a factor in words: half, 2 times."""
    for value, words in _FRACTIONS.items():
        if abs(factor - value) <= NEAR * value:
            return words
    if abs(factor - round(factor)) <= NEAR * factor and round(factor) > 1:
        return f"{round(factor)} times"
    return f"{factor:.4g} times"


def called(view: StepView) -> tuple[str, int]:
    """Return where the model is called."""
    calls = view.lead.calls
    return (calls[0].file, calls[0].line) if calls else ("", 0)
