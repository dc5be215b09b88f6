"""The case: one reading of a failure, shared by terminal, notebook, card, panel, wizard, report and editor.

`contract` is its form for programs, the same for `run`, `attach`, `flight`, `join` and `diagnose`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.explanations.model import rows_of
from dtdebug_taxonomy.model.account import Account, Parting
from dtdebug_taxonomy.model.hosts import Host
from dtdebug_taxonomy.model.ranks import CallSite, Kind, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.training import Late, Pace, Violation
from dtdebug_taxonomy.presentation.answer import build_answer

VERSION = 2
"""Version of the machine-readable form and of `verdict.json`; raised by changes that break readers."""
_SITES = 64
_CLAIMS = 256


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Extent of the examination: part of every answer."""

    ranks: int = 0
    """Number of ranks with data."""
    expected: int = 0
    """Number of ranks of the job; 0 if unknown."""
    hosts: int = 0
    """Number of hosts with data."""
    read: tuple[str, ...] = ()
    """Sources that were read, in words: `output, 120 lines`, `8 dumps`, `stacks of ranks 0-3 by py-spy`."""
    unread: tuple[str, ...] = ()
    """Sources that could not be read or were not examined, each with the reason."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about one failure; stored as `verdict.json` of a run."""

    v: int = VERSION
    verdict: Verdict
    coverage: Coverage = Coverage()
    diagnosis: Diagnosis | None = None
    ranks: tuple[RankState, ...] = ()
    hosts: tuple[Host, ...] = ()
    """Reports of the hosts about themselves."""
    accounts: tuple[Account, ...] = ()
    """Accounts of the exceptions that ended ranks, those of culprits first."""
    parting: Parting | None = None
    """Test or loop at which the ranks of a hang parted."""
    progress: dict[int, str] = {}
    """Rank -> change between two observations: stuck, slow, busy, gone."""
    missing_dumps: tuple[int, ...] = ()
    unanswered: tuple[int, ...] = ()
    """Ranks that may be alive but were not reached."""
    commands: tuple[str, ...] = ()
    """Commands that would query them on other hosts; none was run."""
    notes: tuple[str, ...] = ()
    watch: tuple[Violation, ...] = ()
    """Violated training invariants, if they were watched."""
    pace: tuple[Pace, ...] = ()
    """Time of each rank by phase, if it was watched."""
    late: tuple[Late, ...] = ()
    """Ranks that the others repeatedly wait for, and phases that delay all."""
    next: str = ""
    """The one thing to do next."""
    cases: tuple[Case, ...] = ()
    """Further failures of the same output, in order; this one came first."""


def contract(case: Case) -> dict[str, Any]:
    """Return the machine-readable form: short answer, verdict, claims with records, advice, the rest of the case."""
    v = case.verdict
    site = next((s for s in v.sites if s.rank in v.culprits), None)
    raised = next((c for c in v.claims if c.what == "raised" and c.file), None) if not v.culprits else None
    if raised is not None:  # by an unknown rank
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
    seen = Snapshot(accounts=case.accounts, parting=case.parting, watched=case.watch)
    answer = msgspec.to_builtins(build_answer(case.diagnosis, seen, v))
    return {"v": known.pop("v"), "answer": answer, "verdict": verdict, "claims": claims, "advice": advice, **known}


def of_text(snapshot: Snapshot, diagnosis: Diagnosis, *, name: str = "", size: int = 0) -> Case:
    """Return the case of a log, a pasted error or a description; `size` is the size of the whole log in bytes.

    Without a verdict on ranks, its kind is `not_understood` if a failure is recognised, else `none`.
    """
    verdict = snapshot.verdict
    if verdict is None:
        happened = diagnosis.happened or diagnosis.ordinary
        kind: Kind = "not_understood" if diagnosis.recognised or happened else "none"
        unknown = "Which rank failed first is not said here." if diagnosis.recognised else "No failure is recognised."
        verdict = Verdict(kind=kind, summary=happened or unknown)
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
        accounts=snapshot.accounts,
        notes=snapshot.notes,
        cases=tuple(of_text(*each, name=name) for each in zip(snapshot.later, diagnosis.later, strict=True)),
    )
