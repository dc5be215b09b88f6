"""Odds of all explanations for a job that fails only sometimes: a sequential test that also chooses the next run.

A run without failure is luck or the effect of a change, so each run moves the odds of all explanations by Bayes' rule:
which part is responsible, or the program itself; whether it needs other ranks; how often the job fails. The next run is
the one with the most expected information for its cost. See Wald, "Sequential Tests of Statistical Hypotheses", Annals
of Mathematical Statistics 16(2), 1945, and Chaloner and Verdinelli, "Bayesian Experimental Design: A Review",
Statistical Science 10(3), 1995.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

PROGRAM, SEVERAL = "", "*"
"""Explanations other than a single part: the program itself; several parts together."""
_RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
"""Possible failure rates, equally likely at first."""
_STRAY = 0.01
"""Probability of the same failure although the responsible part was changed."""
_PROGRAM, _SEVERAL = 0.45, 0.03
"""Prior probabilities of the program itself and of several parts; the single parts share the rest equally."""


Ranks = Literal["needed", "alike", "each"]
"""needed: one rank never fails; alike: it fails as often as all; each: ranks fail independently, fewer fail less."""
_RANKS: dict[Ranks, float] = {"needed": 0.4, "alike": 0.4, "each": 0.2}


class Trial(NamedTuple):
    """Changes of a run."""

    changed: frozenset[str] = frozenset()
    one: bool = False
    """With one rank."""


class Explanation(NamedTuple):
    """Explanation, without its failure rate."""

    part: str
    needs_ranks: bool


class Odds:
    """Odds of all explanations.

    `parts` can be changed together, `alone` only one at a time; `world` is the number of ranks, 1 if it is fixed.
    """

    def __init__(self, parts: Sequence[str], alone: Sequence[str] = (), world: int = 1) -> None:
        self._parts, self._alone, self._world = tuple(parts), tuple(alone), world
        several = _SEVERAL if len(parts) > 1 else 0.0
        suspects = (*parts, *alone)
        share = (1 - _PROGRAM - several) / max(1, len(suspects))
        first = {PROGRAM: _PROGRAM, SEVERAL: several, **dict.fromkeys(suspects, share)}
        ranks: dict[Ranks, float] = _RANKS if world > 1 else {"alike": 1.0}
        self._odds: dict[tuple[str, Ranks, float], float] = {
            (part, how, rate): p * q for part, p in first.items() if p for how, q in ranks.items() for rate in _RATES
        }
        self._normalise()

    def see(self, trial: Trial, *, failed: bool) -> None:
        """Update the odds with the result of a run."""
        for key in self._odds:
            chance = self._chance(key, trial)
            self._odds[key] *= chance if failed else 1 - chance
        self._normalise()

    def add_report(self, trial: Trial, *, failed: bool) -> None:
        """Update the odds with a result that the user reports, which counts as one failing or four good runs."""
        for _ in range(1 if failed else 4):
            self.see(trial, failed=failed)

    def causes(self) -> list[tuple[Explanation, float]]:
        """Return the explanations with their probabilities, likeliest first."""
        return sorted(_causes(self._odds).items(), key=lambda row: -row[1])

    def parts(self) -> dict[str, float]:
        """Return the probability of each part, of the program and of several parts."""
        found: dict[str, float] = {}
        for (part, _, _), p in self._odds.items():
            found[part] = found.get(part, 0.0) + p
        return found

    def next(self, costs: tuple[float, float], closed: Collection[Trial] = ()) -> tuple[Trial, float]:
        """Return the run with the most expected information for its cost, and that information in bits.

        `costs`: seconds of a run with all ranks, and with one; `closed`: runs that can't be made.
        """
        now = _entropy(_causes(self._odds).values())
        rows = [(trial, now - self._expected_entropy(trial)) for trial in self._trials() if trial not in closed]
        return max(rows, key=lambda row: row[1] / costs[row[0].one], default=(Trial(), 0.0))

    def _trials(self) -> Iterator[Trial]:
        odds = self.parts()
        ranked = sorted(self._parts, key=lambda part: -odds[part])
        sets = {frozenset(ranked[:n]) for n in range(len(ranked) + 1)}
        sets |= {frozenset((part,)) for part in (*ranked[:4], *self._alone)}
        for one in (False, True)[: 1 + (self._world > 1)]:
            yield from (Trial(changed, one) for changed in sorted(sets, key=sorted))

    def _expected_entropy(self, trial: Trial) -> float:
        """Return the expected entropy in bits after that run."""
        failed: dict[Explanation, float] = {}
        went: dict[Explanation, float] = {}
        for key, p in self._odds.items():
            cause, chance = _cause(key), self._chance(key, trial)
            failed[cause] = failed.get(cause, 0.0) + p * chance
            went[cause] = went.get(cause, 0.0) + p * (1 - chance)
        sides = [(sum(side.values()), side) for side in (failed, went)]
        return sum(total * _entropy(p / total for p in side.values()) for total, side in sides if total > 0)

    def _chance(self, key: tuple[str, Ranks, float], trial: Trial) -> float:
        """Return the probability that the job fails in that run under an explanation."""
        part, how, rate = key
        if part in trial.changed or (part == SEVERAL and trial.changed.issuperset(self._parts)):
            return _STRAY
        if not trial.one or how == "alike":
            return rate
        return _STRAY if how == "needed" else 1 - (1 - rate) ** (1 / self._world)

    def _normalise(self) -> None:
        total = math.fsum(self._odds.values())
        self._odds = {key: p / total for key, p in self._odds.items()}


def _cause(key: tuple[str, Ranks, float]) -> Explanation:
    return Explanation(key[0], key[1] == "needed")


def _causes(odds: dict[tuple[str, Ranks, float], float]) -> dict[Explanation, float]:
    found: dict[Explanation, float] = {}
    for key, p in odds.items():
        cause = _cause(key)
        found[cause] = found.get(cause, 0.0) + p
    return found


def _entropy(probabilities: Iterator[float] | Collection[float]) -> float:
    return -math.fsum(p * math.log2(p) for p in probabilities if p > 0)
