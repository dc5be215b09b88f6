"""Formats the answer as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dtdebug.experiments.isolate.claims import claims, factor_name, format_changes
from dtdebug.experiments.isolate.recording_diff import NOT_SET
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, NODES, RANKS, Run
from dtdebug.experiments.isolate.search_state import FAILS, WORDS, SearchState
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.presentation.text import reading

VERSION = 1
_RUNS, _TEXT = 200, 240


def to_text(found: SearchState, diagnosis: Diagnosis | None) -> str:
    """Return the failure, the changes, the responsible parts, and the diagnosis as text."""
    return "\n".join(_lines(found, diagnosis)) + "\n"


def _lines(found: SearchState, diagnosis: Diagnosis | None) -> Iterator[str]:
    cost = _cost(found)
    if found.failure is None or found.first is None:
        yield f"dtdebug isolate: {found.unfinished or 'does not fail'}: {cost}"
        yield from (f"  not varied: {one_line(line, _TEXT)}" for line in found.not_varied)
        if not found.unfinished:
            yield "  if it fails only sometimes, say so: --answer reproducible=sometimes"
        return
    text = one_line(found.failure.text, _TEXT)
    how = {"slow": "is slow", "differs": "differs"}.get(found.failure.how, f"fails in {duration(found.first.seconds)}")
    yield f"dtdebug isolate: {how}: {text}"
    if found.rate is not None:
        yield f"  does not fail reliably ({found.rate[0]} of {found.rate[1]}): judged by the odds of all runs"
    yield from _table(found)
    yield from (f"  {factor_name(name)}: could not be changed, or it was not seen to be" for name in found.unproven)
    yield from (f"  not varied: {one_line(line, _TEXT)}" for line in found.not_varied)
    others = {one_line(run.failure.text, _TEXT) for run in found.runs if run.outcome == "other" and run.failure}
    yield from (f"  another failure on the way, not followed: {line}" for line in sorted(others)[:3])
    if found.unfinished:
        yield f"  the search ended early: {found.unfinished}; --resume goes on"
    yield f"{_responsible(found)}      {cost}"
    if diagnosis is None:  # it succeeded: there is nothing else to diagnose
        for r in found.responsible:
            yield from (f"  fix: {r.fix}",) if r.fix else ()
            yield from (f"      {line}" for line in r.diff.splitlines())
    else:
        yield from (clean(line) for line in reading(diagnosis))
        if diagnosis.ordinary:
            yield f"  {one_line(diagnosis.ordinary, _TEXT)}"


def _cost(found: SearchState) -> str:
    return f"{count_of_runs(len(found.runs))}, {duration(sum(run.seconds for run in found.runs))}"


def _table(found: SearchState) -> Iterator[str]:
    rows = [(row.title, "   ".join(f"{to} {went}" for to, went in row.tried), row.says) for row in found.rows]
    first = max((len(row[0]) for row in rows), default=0)
    second = min(60, max((len(row[1]) for row in rows), default=0))
    yield from (clean(f"  {title:{first}}  {tried:{second}}  {says}".rstrip()) for title, tried, says in rows)


def _responsible(found: SearchState) -> str:
    if not found.responsible and not found.rows and not found.unfinished:
        return "responsible: not known: no number of ranks is in the command, and no part that can be changed was seen"
    if not found.responsible:
        return f"responsible: {found.undecided or 'not known'}"
    names = " x ".join(r.text for r in found.responsible)
    changed = [r for r in found.responsible if r.factor not in (RANKS, NODES, "program")]
    # a variable that matters if it is set
    changed = [r for r in changed if not (r.factor.startswith(ENVIRONMENT) and r.value == NOT_SET)]
    without = f" (not with {', '.join(f'{factor_name(r.factor)} {r.value}' for r in changed)})" if changed else ""
    place = next((f" at {r.value}" for r in found.responsible if r.factor == "program" and r.value), "")
    doubt = "" if found.confirmed or found.rate is not None or found.unfinished == "" else " (seen once)"
    whole = "; distribution is not it" if found.distributed is False else ""
    return clean(f"responsible: {names}{place}{without}{whole}{doubt}")


def to_json(found: SearchState, diagnosis: Diagnosis | None, *, written: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the answer as JSON data."""
    failure = found.failure
    return {
        "v": VERSION,
        "failure": None if failure is None else {**msgspec.to_builtins(failure), "seconds": _seconds(found.first)},
        "reliable": None if found.rate is None else {"failed": found.rate[0], "of": found.rate[1]},
        "runs": [
            {
                "factors": run.factors,
                "outcome": run.outcome,
                "seconds": run.seconds,
                "pace": run.pace,
                "unproven": list(run.unproven),
                "failure": run.failure.text if run.failure is not None else "",
            }
            for run in found.runs[:_RUNS]
        ],
        "table": [msgspec.to_builtins(row) for row in found.rows],
        "answer": f"{_responsible(found)}      {_cost(found)}" if failure else _cost(found),
        "responsible": [msgspec.to_builtins(r) for r in found.responsible],
        "distributed": found.distributed,
        "confirmed": found.confirmed,
        "undecided": found.undecided,
        "ruled_out": found.ruled_out,
        "could_not_be_changed": found.unproven,
        "not_varied": found.not_varied,
        "unfinished": found.unfinished,
        "claims": [{**msgspec.to_builtins(c), "text": c.text} for c in claims(found)],
        "written": list(written),
        "diagnosis": None if diagnosis is None else msgspec.to_builtins(diagnosis),
    }


def progress(run: Run, number: int) -> str:
    """Return the line about a finished run."""
    changed = format_changes(run.factors) or "as it is"
    as_before, _, _, _ = WORDS.get(run.failure.how, FAILS) if run.failure is not None else FAILS
    words = {"same": as_before, "ok": "ok", "other": "fails in another way", "timeout": "no end in time"}[run.outcome]
    return one_line(f"run {number}, {changed}: {words}, {duration(run.seconds)}", 400)


def _seconds(run: Run | None) -> float:
    return run.seconds if run is not None else 0.0


def count_of_runs(number: int) -> str:
    """Format a number of runs: `1 run`."""
    return f"{number} run{'s' * (number != 1)}"


def duration(seconds: float) -> str:
    """Format a duration: `14 s`, `2 min 41 s`."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
