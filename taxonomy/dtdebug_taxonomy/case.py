"""The case: one reading of a failure, which terminal, notebook, card, panel, wizard, report and editor share.

`contract` is its form for programs, the same for `run`, `attach`, `flight`, `join` and `diagnose`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dtdebug_taxonomy.diagnosis import Diagnosis
from dtdebug_taxonomy.explanations.model import rows_of
from dtdebug_taxonomy.hosts import Host
from dtdebug_taxonomy.ranks import CallSite, Kind, RankState, Verdict
from dtdebug_taxonomy.snapshot import Snapshot
from dtdebug_taxonomy.watched import Late, Pace, Violation

VERSION = 2
"""Of the form for programs and of `verdict.json`; a change that breaks readers raises it."""
_SITES = 64
_CLAIMS = 256


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and what was not: part of every answer."""

    ranks: int = 0
    """Ranks of which something was read."""
    expected: int = 0
    """Ranks that the job has; 0 where nobody says."""
    hosts: int = 0
    """Hosts of which something was read."""
    read: tuple[str, ...] = ()
    """What was read, in words: `output, 120 lines`, `8 dumps`, `stacks of ranks 0-3 by py-spy`."""
    unread: tuple[str, ...] = ()
    """What could not be read or was not looked at, each with the reason."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one failure; `verdict.json` of a run holds it."""

    v: int = VERSION
    verdict: Verdict
    coverage: Coverage = Coverage()
    diagnosis: Diagnosis | None = None
    ranks: tuple[RankState, ...] = ()
    hosts: tuple[Host, ...] = ()
    """What each host said of itself."""
    progress: dict[int, str] = {}
    """Rank -> what happened between two looks: stuck, slow, busy, gone."""
    missing_dumps: tuple[int, ...] = ()
    unanswered: tuple[int, ...] = ()
    """Ranks that may live and were not reached."""
    commands: tuple[str, ...] = ()
    """What would ask for them on other hosts; none of it was run."""
    notes: tuple[str, ...] = ()
    watch: tuple[Violation, ...] = ()
    """What did not hold that must hold in every healthy training, if that was watched."""
    pace: tuple[Pace, ...] = ()
    """How each rank spent its time, if that was watched."""
    late: tuple[Late, ...] = ()
    """Ranks that the others wait for again and again, and phases that hold up all."""
    next: str = ""
    """The one thing to do next."""
    cases: tuple[Case, ...] = ()
    """Further failures of the same output, the first of them first; this one came before them."""


def contract(case: Case) -> dict[str, Any]:
    """The form for programs: verdict, claims with their records, advice as `--batch` gives it, the rest of the case."""
    v = case.verdict
    site = next((s for s in v.sites if s.rank in v.culprits), None)
    raised = next((c for c in v.claims if c.what == "raised" and c.file), None) if not v.culprits else None
    if raised is not None:  # by a rank that nobody names
        site = CallSite(-1, raised.file, raised.line, raised.function)
    elif site is None and v.sites and (not v.culprits or v.kind == "left"):
        site = v.sites[0]
    known: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(case, cases=()))
    known["cases"] = [contract(each) for each in case.cases]
    verdict = known.pop("verdict")
    claims = verdict.pop("claims")[:_CLAIMS]
    verdict["sites"] = verdict["sites"][:_SITES]
    verdict["where"] = None if site is None else {"file": site.file, "line": site.line, "function": site.function}
    for row, claim in zip(claims, v.claims, strict=False):
        row["text"] = claim.text
    advice = [] if case.diagnosis is None else rows_of(case.diagnosis.advice, case.diagnosis.guesses)
    return {"v": known.pop("v"), "verdict": verdict, "claims": claims, "advice": advice, **known}


def of_text(snapshot: Snapshot, diagnosis: Diagnosis, *, name: str = "", size: int = 0) -> Case:
    """The case of a log, a pasted error or a description; `size` are the bytes of the whole log.

    Without a verdict on ranks nothing is claimed of them: what is recognised without one is not understood as far as
    ranks go, and `none` says only that nothing was recognised and no failure is seen.
    """
    verdict = snapshot.verdict
    if verdict is None:
        kind: Kind = "not_understood" if diagnosis.recognised or diagnosis.happened else "none"
        unknown = "Which rank failed first is not said here." if diagnosis.recognised else "No failure is recognised."
        verdict = Verdict(kind=kind, summary=diagnosis.happened or unknown)
    output = snapshot.output
    read = (
        [f"{name or 'output'}, {output.count(chr(10)) + bool(output and output[-1] != chr(10))} lines"]
        if output
        else []
    )
    read += ["the description"] if snapshot.situation else []
    kept = len(output.encode())
    skipped = size > kept and bool(snapshot.first_lines)
    return Case(
        verdict=verdict,
        coverage=Coverage(
            ranks=len({*verdict.culprits, *verdict.waiting}),
            read=tuple(read),
            unread=(f"{size - kept} of {size} bytes in the middle of the log",) if skipped else (),
        ),
        diagnosis=msgspec.structs.replace(diagnosis, later=()),
        notes=snapshot.notes,
        cases=tuple(of_text(*each, name=name) for each in zip(snapshot.later, diagnosis.later, strict=True)),
    )
