"""The advice that rests on runs of the job with things changed: with this change it no longer failed."""

from __future__ import annotations

from dtdebug_taxonomy.advice import LIKELY, MOST, Advice, Reason, band, in_python
from dtdebug_taxonomy.model import MINUTES
from dtdebug_taxonomy.snapshot import Snapshot

_SURE, _ONCE = 0.9, LIKELY
"""Probabilities of what was seen more than once, and of what one run has shown."""
EVIDENCE = "isolate"


def measured(snapshot: Snapshot, symptom: str) -> Advice | None:
    """What the runs have shown to be responsible; None where none were made, or none of them tells what to do."""
    found = snapshot.isolated
    parts = [part for part in found.parts if part.fix] if found is not None else []
    if found is None or not parts:
        return None
    title = " x ".join(part.title for part in found.parts)
    diff = next((part.diff for part in parts if part.diff), "")
    p = _SURE if found.sure else _ONCE
    effort = max((part.effort for part in parts), key=lambda e: MINUTES[e])
    return Advice(
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
        in_python=in_python(diff),
        because=(Reason(evidence=EVIDENCE, means=found.means, source="measured", weight=3.0),),
        named=True,
    )


def with_measured(advice: tuple[Advice, ...], shown: Advice) -> tuple[Advice, ...]:
    """It comes first, unless it only leads to the program, of which something else names more."""
    general = shown.cause == "isolated-program" and bool(advice) and (advice[0].named or advice[0].band == "likely")
    return ((*advice[:1], shown, *advice[1:]) if general else (shown, *advice))[:MOST]
