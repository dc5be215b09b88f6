"""Types of an explanation: a cause with its fix, the findings it rests on, and the grade of the best of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from dtdebug_taxonomy.incident import Incident
from dtdebug_taxonomy.inference.finding import LIKELY, POSSIBLE
from dtdebug_taxonomy.knowledge.schema import MINUTES
from dtdebug_taxonomy.logs.final_errors import FinalError
from dtdebug_taxonomy.model.effort import Effort
from dtdebug_taxonomy.text.pattern_matcher import plain

Band = Literal["likely", "possible", "unlikely"]
MAX_EXPLANATIONS = 5
"""Maximum number of explanations kept."""
Grade = Literal["measured", "source", "printed", "quoted", "stated", "resembles"]
GRADES: tuple[Grade, ...] = ("measured", "source", "printed", "quoted", "stated", "resembles")
"""Kinds of support, the most trusted first: measured or answered; shown by the source; printed by the job; a message
that the user quotes, or releases, runs and figures that they compare; their own words; likeness to other failures."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that supports or contradicts a symptom or cause."""

    evidence: str
    """Evidence id, or key of an observation."""
    values: tuple[str, ...] = ()
    """For an observation: values, one of which holds."""
    means: str
    source: str
    weight: float
    """Log likelihood ratio."""
    line: int = 0
    words: str = ""
    rank: int | None = None
    file: str = ""
    """File of what a check sees; empty for the failed cell."""
    of_account: bool = False
    """An account gives it: the title of the explanation has the values."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A cause with its fix, and what it rests on."""

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
    """Owner of the changed file: the user, or an example."""
    file: str = ""
    """The user's file to edit, or the cell, such as `cell In[3]`; empty if none can be named."""
    line: int = 0
    """The line of it to edit; 0 if none can be named."""
    in_python: bool = False
    """The diff leaves Python that parses, so a cell may take it."""
    because: tuple[Reason, ...] = ()
    grade: Grade = "resembles"
    """Grade of the best of its reasons."""
    named: bool = False
    """The output, the exception, a check of the source or a comparison that the user made names it: the next step is
    the fix, not another run."""
    specific: bool = False
    """The title is a sentence about this failure, not the name of a class of causes."""
    tried: str = ""
    """Result of a run with the diff, as a clause; empty if none was made."""
    works: bool = False
    """The job ended well with the diff."""
    settled: bool = True
    """False if the place to edit is only where a value came from: nothing shows that a change there is enough."""


_SHOWN = ("cause", "title", "why", "fix", "diff", "diff_of", "file", "line", "pattern", "band", "grade", "because")
"""Fields that front ends show."""


def rows_of(causes: Iterable[Explanation], guesses: Iterable[Explanation] = ()) -> list[dict[str, Any]]:
    """Return the causes as rows for programs, guesses last and marked, with the second study's label of each."""
    from dtdebug_taxonomy.knowledge import second_study

    study = second_study.load().row
    return [
        {
            **msgspec.to_builtins({name: getattr(a, name) for name in _SHOWN}),
            "guess": guess,
            "second_study": study(a.symptom, a.cause, a.pattern),
        }
        for guess, rows in ((False, causes), (True, guesses))
        for a in rows
    ]


def with_diff(found: Explanation, diff: str, *, file: str = "", line: int = 0) -> Explanation:
    """Return an explanation with a diff of the user's own file, and the place to edit if it is named."""
    place = {"file": file, "line": line} if file else {}
    return msgspec.structs.replace(found, diff=diff, diff_of="yours" if diff else "", **place)


def without_diff(found: Explanation) -> Explanation:
    """Return an explanation without its diff."""
    return msgspec.structs.replace(found, diff="", diff_of="")


def in_python(diff: str) -> bool:
    """True if the lines that a diff leaves parse as Python; shell, configuration and torn blocks do not."""
    import ast
    import textwrap

    left = [line[1:] for line in diff.splitlines() if line[:1] in {"+", " "} and not line.startswith("+++")]
    try:
        return bool(ast.parse(textwrap.dedent("\n".join(left))).body)
    except (SyntaxError, ValueError):
        return False


def band(probability: float) -> Band:
    """Return the word shown instead of a probability."""
    return "likely" if probability >= LIKELY else "possible" if probability >= POSSIBLE else "unlikely"


def explanation_for(  # noqa: PLR0917
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
    specific: bool = True,
) -> Explanation:
    """Return an explanation that rests on one reason, which also names its cause."""
    return Explanation(
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
        specific=specific,
    )


WORKED_OUT = "Worked out from the figures."
"""Meaning of figures that say nothing by themselves: the answer shows why their cause makes it fail."""


def reason_of_figures(
    incident: Incident, evidence: str, found: re.Match[str], means: str = WORKED_OUT, weight: float = 1.5
) -> Reason:
    """Return what a pattern found in `said`, `printed` or `texts` as the reason of an explanation."""
    source, line = incident.line_of(found)
    words = plain(" ".join(found[0].split()))[:200]
    return Reason(evidence=evidence, means=means, source=source, weight=weight, line=line, words=words)


def printed_reason(error: FinalError, evidence: str, means: str, words: str) -> Reason:
    """Return a final error as the reason of an explanation."""
    return Reason(
        evidence=evidence,
        means=means,
        source="printed" if error.line else "exception",
        weight=1.5,
        line=error.line,
        words=plain(words)[:200],
        rank=error.rank,
    )
