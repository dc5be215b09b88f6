"""Turns the runs into claims, measured indicators and a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

import msgspec

from dtdebug.experiments.isolate.advice import isolation_result
from dtdebug.experiments.isolate.prior_knowledge import UserReport
from dtdebug.experiments.isolate.run_outcome import snapshot_of
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, NODES, RANKS, VERSION
from dtdebug.experiments.isolate.search_state import SearchState
from dtdebug.privacy.boundary import diagnose
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.knowledge import factors
from dtdebug_taxonomy.knowledge.loader import Knowledge, load
from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.snapshot import Snapshot

_CLAIMS = 40
_LONGER = "did not fail for longer than it takes to fail"


def claims(found: SearchState) -> tuple[Claim, ...]:
    """Return one claim per conclusive run: what was changed, and whether the job then failed in the same way."""
    rows: dict[str, Claim] = {}
    for run in found.runs:
        changed = {name: to for name, to in run.factors.items() if name not in run.unproven}
        if not changed or len(changed) < len(run.factors) or run.outcome == "other":
            continue
        went = _LONGER if run.outcome == "timeout" else found.words[2 if run.outcome == "same" else 3]
        words = f"With {format_changes(changed)} the job {went}"
        name = f"{PurePath(run.folder).parent.name} of isolate"
        record = Record(source="run", path=name, words=f"{run.outcome}, {run.seconds:.0f} s")
        rows.setdefault(words, Claim(what="varied", ranks=(), record=record, words=words, count=1))
    return tuple(rows.values())[:_CLAIMS]


def format_changes(changed: Mapping[str, str]) -> str:
    """Format changes: `2 ranks, loader workers 0, NCCL_DEBUG not set`."""
    counted = {RANKS: "rank", NODES: "host"}
    return ", ".join(
        f"{to} {counted[name]}{'s' * (to != '1')}" if name in counted else f"{factor_name(name)} {to}"
        for name, to in changed.items()
    )


def factor_name(name: str) -> str:
    """Return the display name of a factor or variable."""
    title = next((f.title for f in factors.load() if f.id == name), "")
    return title or name.removeprefix(ENVIRONMENT).removeprefix(VERSION)


def contrasts(found: SearchState, knowledge: Knowledge) -> dict[str, tuple[str, str]]:
    """Return observation -> (answer, run that shows it) for the questions that the runs answer."""
    said: dict[str, tuple[str, str]] = {}
    if found.works_with_one is not None:
        went = found.words[3 if found.works_with_one else 2]
        said["works_with_one_process"] = ("yes" if found.works_with_one else "no", f"run with one rank: {went}")
    failing = sum(run.outcome == "same" for run in found.runs)
    if found.rate is not None:
        said["reproducible"] = ("sometimes", f"it failed in {found.rate[0]} of {found.rate[1]} runs")
    elif failing > 1:
        said["reproducible"] = ("always", f"it failed in {failing} runs")
    alone = {
        next(iter(set(run.factors) - {RANKS, NODES})): run.outcome
        for run in found.runs
        if len(set(run.factors) - {RANKS, NODES}) == 1
    }
    if alone.get("gloo-backend") in ("ok", "same"):
        value = "yes" if alone["gloo-backend"] == "ok" else "no"
        said["works_with_other_backend"] = (value, "run with gloo in place of nccl")
    saw = found.first.saw if found.first is not None else {}
    if "data" in saw:
        workers = saw.get("loader.workers", "0")
        said["data_loader_workers"] = ("several" if "loader.workers" in saw else "zero", f"num_workers={workers}")
    if "loader.last-batch" in saw:
        said["batch_divisible"] = ("no", f"{saw['loader.last-batch']} samples are left for the last batch")
    values = {key: {value.value for value in o.value} for key, o in knowledge.observations.items()}
    return {key: row for key, row in said.items() if row[0] in values.get(key, ())}


def diagnose_search(found: SearchState, told: UserReport) -> tuple[Snapshot, Diagnosis] | None:
    """Return the failure with the runs' contrasts as indicators, and its diagnosis; None if nothing was captured.

    The user's answers count unless a run has answered the question.
    """
    snapshot = snapshot_of(found.first) if found.first is not None else None
    if snapshot is None:
        return None
    knowledge = load()
    shown = contrasts(found, knowledge)
    answers = {key: value for key, value in told.answers if key not in shown}
    snapshot = msgspec.structs.replace(
        snapshot,
        contrasts=shown,
        situation=told.situation or snapshot.situation,
        isolated=isolation_result(found, {f.id: f for f in factors.load()}),
    )
    if snapshot.verdict is not None:
        all_claims = (*snapshot.verdict.claims, *claims(found))
        rest = [line for line in snapshot.verdict.evidence if line not in texts(snapshot.verdict.claims)]
        verdict = msgspec.structs.replace(snapshot.verdict, claims=all_claims, evidence=(*texts(all_claims), *rest))
        snapshot = msgspec.structs.replace(snapshot, verdict=verdict)
    return snapshot, diagnose(knowledge, snapshot, answers)
