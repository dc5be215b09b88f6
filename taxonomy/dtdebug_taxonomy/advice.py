"""What is shown of a cause: the advice, and the findings that it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from dtdebug_taxonomy.model import MINUTES, Effort

Band = Literal["likely", "possible", "unlikely"]
LIKELY, POSSIBLE = 0.6, 0.15
"""Probabilities from which the words are used."""
MOST = 5
"""Pieces of advice that are kept."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One finding that speaks for (or against) a symptom or cause."""

    evidence: str
    """Evidence id or `observation=value`."""
    means: str
    source: str
    weight: float
    """Log likelihood ratio."""
    line: int = 0
    words: str = ""
    rank: int | None = None
    file: str = ""
    """File of what a check sees; empty for the failed cell."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """A cause that an indicator points at, with its fix; ordered by probability over minutes."""

    symptom: str
    cause: str
    title: str
    pattern: str
    """Published name of the fix pattern."""
    probability: float
    band: Band
    why: str
    fix: str
    effort: Effort
    minutes: float
    diff: str = ""
    diff_of: Literal["yours", "example", ""] = ""
    """Whose file the diff changes: the user's own, or that of an example."""
    in_python: bool = False
    """What the diff leaves is Python that parses, so that a cell may take it."""
    because: tuple[Reason, ...] = ()
    named: bool = False
    """The output, the exception, a check of the source or the user's own pair of runs names it: what to do next is the
    fix, not another run."""


_SHOWN = ("cause", "title", "why", "fix", "diff", "diff_of", "pattern", "band", "because")
"""What of each advice a front end shows."""


def shown(advice: Iterable[Advice], guesses: Iterable[Advice] = ()) -> list[dict[str, Any]]:
    """The causes as rows for programs, guesses marked and behind them, with what the second study calls each."""
    from dtdebug_taxonomy import second_study

    study = second_study.load().row
    return [
        {
            **msgspec.to_builtins({name: getattr(a, name) for name in _SHOWN}),
            "guess": guess,
            "second_study": study(a.symptom, a.cause, a.pattern),
        }
        for guess, rows in ((False, advice), (True, guesses))
        for a in rows
    ]


def in_python(diff: str) -> bool:
    """Whether what a diff leaves is Python that parses: shell, configuration and torn blocks are not."""
    import ast
    import textwrap

    left = [line[1:] for line in diff.splitlines() if line[:1] in {"+", " "} and not line.startswith("+++")]
    try:
        return bool(ast.parse(textwrap.dedent("\n".join(left))).body)
    except (SyntaxError, ValueError):
        return False


def band(probability: float) -> Band:
    """The word that is shown in place of a figure."""
    return "likely" if probability >= LIKELY else "possible" if probability >= POSSIBLE else "unlikely"


def advice_for(  # noqa: PLR0917
    symptom: str,
    title: str,
    why: str,
    fix: str,
    probability: float,
    because: Reason,
    *,
    pattern: str = "fix behavior logic",
    effort: Effort = "edit",
    named: bool = True,
) -> Advice:
    """Advice that rests on one reason, after which its cause is called."""
    return Advice(
        symptom=symptom,
        cause=because.evidence,
        title=title,
        pattern=pattern,
        probability=probability,
        band=band(probability),
        why=why,
        fix=fix,
        effort=effort,
        minutes=MINUTES[effort],
        because=(because,),
        named=named,
    )
