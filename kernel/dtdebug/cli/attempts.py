"""Prints what to do after several attempts of one job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dtdebug.errors import FOUND, NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtdebug.recorded.attempts.attempt import Attempt
    from dtdebug.recorded.attempts.decision import Decision
    from dtdebug_taxonomy.model.answer import Answer

_SHOWN = 4


def answer(decision: Decision, form: str, *, full: bool = False) -> int:
    """Print the decision as text or JSON; return the exit status."""
    if form == "json":
        import msgspec

        print(msgspec.json.encode(record(decision)).decode())
    else:
        from dtdebug.presentation.terminal import format_answer

        rows = decision.attempts if full else decision.attempts[-_SHOWN:]
        print(format_answer(_short(decision, rows), sys.stdout))
        if full:
            print("\n".join(_row(decision, n) for n in range(len(decision.attempts))))
    return NOTHING if decision.action == "none" else FOUND


def record(decision: Decision) -> dict[str, Any]:
    """Return the JSON form."""
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(decision)
    return {"v": 1, **row}


def note(decision: Decision) -> str:
    """Return the decision as one sentence below the answer on the last attempt."""
    lost = _loss(decision)
    return f"{len(decision.attempts)} attempts: {decision.headline}{f' {lost}.' if lost else ''}"


def _loss(decision: Decision) -> str:
    if decision.lost_steps is None:
        return ""
    hours = f", {decision.lost_hours:g} h" if decision.lost_hours else ""
    saved = max((a.saved for a in decision.attempts if a.saved is not None), default=None)
    since = f"the last checkpoint, of step {saved:,}" if saved is not None else "the start (no checkpoint printed)"
    return f"Lost: {decision.lost_steps:,} steps{hours} since {since}"


def _short(decision: Decision, rows: Sequence[Attempt]) -> Answer:
    from dtdebug_taxonomy.model.answer import Answer, Certainty, Spot

    first = len(decision.attempts) - len(rows) + 1
    spots = tuple(
        Spot(
            ranks=() if a.rank is None else (a.rank,),
            file=a.file,
            line=a.line,
            state=f"attempt {number}{f' on {a.host}' if a.host else ''}"
            f"{f' at step {a.step:,}' if a.step is not None else ''}: {a.words[:70]}",
        )
        for number, a in enumerate(rows, first)
        if a.failed
    )
    lost = _loss(decision)
    known: dict[str, Certainty] = {"none": "well", "unknown": "unknown"}
    return Answer(
        headline=decision.headline,
        spots=spots,
        why=decision.why,
        sure=known.get(decision.action, "likely"),
        notes=(lost,) if lost else (),
    )


def _row(decision: Decision, n: int) -> str:
    a = decision.attempts[n]
    facts = [f"attempt {n + 1}"]
    if a.begun is not None:
        facts.append(f"steps {a.begun:,} to {a.step:,}")
    if a.saved is not None:
        facts.append(f"last checkpoint {a.saved:,}")
    facts += [text for text in (a.host, a.position, f"code {a.code}" if a.code else "", ", ".join(a.releases)) if text]
    facts.append(a.words or ("completed" if a.completed else "no failure"))
    return f"  {'; '.join(facts)} ({a.file}:{a.line})"
