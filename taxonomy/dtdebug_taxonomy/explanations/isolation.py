"""Runs of the job with something changed: with this change it no longer failed."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, band
from dtdebug_taxonomy.inference.finding import LIKELY
from dtdebug_taxonomy.knowledge.schema import MINUTES
from dtdebug_taxonomy.model.snapshot import Snapshot

_SURE, _ONCE = 0.9, LIKELY
"""Probabilities of a repeated result, and of a single run."""
EVIDENCE = "isolate"
_PROGRAM = "isolated-program"
"""Cause if the runs have only shown that it is the program itself."""


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the component that runs of the job with something changed have shown to be responsible."""
    yield from (shown for shown in explain_all(context) if shown.cause != _PROGRAM)


def explain_program(context: Context) -> Iterator[Explanation]:
    """Yield the program itself, if that is all that such runs have shown."""
    yield from (shown for shown in explain_all(context) if shown.cause == _PROGRAM)


def explain_all(context: Context) -> tuple[Explanation, ...]:
    """Return what such runs have shown; empty if there are none or they suggest no fix."""
    shown = isolated_cause(context.incident.snapshot, next(iter(context.ranking.symptoms)))
    return (shown,) if shown is not None else ()


def isolated_cause(snapshot: Snapshot, symptom: str) -> Explanation | None:
    """Return what the runs have shown to be responsible, or None if there are none or they suggest no fix."""
    found = snapshot.isolated
    parts = [part for part in found.parts if part.fix] if found is not None else []
    if found is None or not parts:
        return None
    title = " x ".join(part.title for part in found.parts)
    diff = next((part.diff for part in parts if part.diff), "")
    p = _SURE if found.sure else _ONCE
    effort = max((part.effort for part in parts), key=lambda e: MINUTES[e])
    return Explanation(
        symptom=symptom,
        cause=f"isolated-{parts[0].factor}",
        title=f"Measured: {title}",
        pattern=parts[0].pattern,
        probability=p,
        band=band(p),
        why="The job was run with this changed and nothing else.",
        fix=" ".join(part.fix for part in parts),
        effort=effort,
        minutes=MINUTES[effort],
        diff=diff,
        diff_of="yours" if diff else "",
        because=(Reason(evidence=EVIDENCE, means=found.means, source="measured", weight=3.0),),
        grade="measured",
        named=True,
    )
