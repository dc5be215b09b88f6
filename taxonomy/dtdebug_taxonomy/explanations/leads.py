"""Subject of an answer where several readers of one failure have found something: the table of its subjects.

Each subject looks at what was read, never at whether another one applies; the first that applies leads, and the others
are added below it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from dtdebug_taxonomy.explanations.model import Grade
from dtdebug_taxonomy.logs.log_end import is_stop
from dtdebug_taxonomy.model.ranks import Verdict

Subject = Literal["attempts", "ranks", "end", "curves", "message", "nothing"]
NUMERIC = "non-convergence"
"""The symptom that curves show better than messages do."""
_INDIRECT = frozenset({"checked", "said", "similar"})
"""Sources of a symptom that no line of the output shows."""


class Seen(NamedTuple):
    """Findings of the readers of one failure, each for itself."""

    verdict: Verdict | None = None
    """On the ranks, by what they printed."""
    happened: bool = False
    """True if something printed ended a process."""
    recognised: bool = False
    """True if a symptom or an ordinary error is recognised."""
    symptom: str = ""
    """Id of the first symptom."""
    sources: frozenset[str] = frozenset()
    """Sources of what shows that symptom."""
    ranks: bool = False
    """True if the logs of several ranks show which one failed, went silent or fell behind."""
    curves: bool = False
    """True if a curve shows a fault."""
    attempts: bool = False
    """True if the logs are those of several attempts, or of one that needs no further one."""


class Lead(NamedTuple):
    """One subject."""

    subject: Subject
    name: str
    applies: Callable[[Seen], bool]
    grade: Grade
    """Grade of its evidence."""
    below: str
    """Its place below another subject."""


def _shows_end(seen: Seen) -> bool:
    """True if the output shows a failure that a curve does not show better."""
    if is_stop(seen.verdict) or (_is_numeric(seen) and not seen.happened):
        return False
    return seen.happened or (seen.recognised and not seen.sources <= _INDIRECT)


def _is_numeric(seen: Seen) -> bool:
    return seen.symptom == NUMERIC and (seen.verdict is None or seen.verdict.kind == "none")


LEADS = (
    Lead("attempts", "several attempts of one job", lambda seen: seen.attempts, "measured", "a note"),
    Lead("ranks", "a rank that failed, went silent or fell behind", lambda seen: seen.ranks, "measured", "a note"),
    Lead("end", "what ended a process, by its output", _shows_end, "printed", "(always shown, unless attempts lead)"),
    Lead("curves", "a fault in a curve", lambda seen: seen.curves, "measured", "a line"),
    Lead(
        "message",
        "a log that just stops, or a symptom by words, likeness or source alone",
        lambda seen: seen.recognised or is_stop(seen.verdict),
        "resembles",
        "left out",
    ),
)
"""In order of precedence."""


def subject_of(seen: Seen) -> Subject:
    """Return the subject of the answer."""
    return next((lead.subject for lead in LEADS if lead.applies(seen)), "nothing")


def describe() -> str:
    """Return the table as Markdown, for `docs/how-it-works.md`."""
    rows = [f"| {n} | {lead.name} | {lead.grade} | {lead.below} |" for n, lead in enumerate(LEADS, 1)]
    return "\n".join(("| | the answer is about | which is | below another |", "| --- | --- | --- | --- |", *rows))


if __name__ == "__main__":
    print(describe())
