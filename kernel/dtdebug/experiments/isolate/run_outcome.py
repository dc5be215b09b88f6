"""Reads the results of a run: its outcome compared with the first run, parts in use, and changes seen in its ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

import dtdebug_taxonomy
from dtdebug.errors import UsageError
from dtdebug.experiments.isolate import recording_diff, step_time
from dtdebug.experiments.isolate.environment_changes import knob
from dtdebug.experiments.isolate.failure_identity import FailureIdentity, of_case, same_failure
from dtdebug.experiments.isolate.inside import record_writer
from dtdebug.experiments.isolate.job_command import JobCommand
from dtdebug.experiments.isolate.run_types import ENVIRONMENT, NODES, RANKS, VERSION, Choices, Outcome, Run
from dtdebug.live.job.conclude import printed_output
from dtdebug.privacy.sanitize import clean
from dtdebug.storage import state_dir
from dtdebug.storage.last_failure import LastFailure
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.knowledge.factors import Factor
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.presentation.case_json import Case

FOUND_LIMIT = 64 << 20
_OURS = f"{Path(dtdebug_taxonomy.__file__).parent}{os.sep}"
"""Folder of dtdebug's own index, which a process of the job may write when it reports how it failed."""


class CommandEnd(NamedTuple):
    """Exit of a run's command."""

    status: int | None
    """Exit status; None if dtdebug ended it."""
    seconds: float
    others: float = 0.0
    """Share of the processors' work that was not this run's; only for a slow job."""


class RunReader:
    """Reader for the runs of one job."""

    def __init__(self, job: JobCommand, home: Path, choices: Choices, factors: Mapping[str, Factor]) -> None:
        self._job, self._home, self._choices, self._factors = job, home, choices, factors

    def read(
        self, setting: Mapping[str, str], reference: FailureIdentity | None, ended: CommandEnd, folder: RunFolder
    ) -> tuple[Run, str]:
        """Return (run, rank 0's own seed if it can be used in another run, else "")."""
        rows = list(record_writer.read_notes(folder.path.parent / "notes"))
        saw = {row["name"]: row.get("value", "") for row in rows if row["kind"] == "saw"}
        own = ""
        if (seed := seeds(rows)) is not None:
            saw["seeds"] = seed
            if seed.isdecimal() and len(seed) < 10 and "equal-seeds" not in setting:  # NumPy takes 32 bits
                own = seed
        if self._choices.kind == "differs":
            saw["recorded"] = str(self._choices.recorded)
        seconds = 0.0
        if self._choices.kind == "slow" and not ended.status:
            outcome, failure, seconds = self._pace(reference, ended, folder)
        else:
            outcome, failure = self._outcome(reference, ended, saw, folder)
        return Run(
            factors=dict(setting),
            outcome=outcome,
            seconds=ended.seconds,
            pace=seconds,
            failure=failure,
            unproven=tuple(name for name in setting if not self._is_proven(name, setting, rows, saw, folder)),
            saw=saw,
            at=self._places(rows, folder.path.parent),
            denied=tuple(path for path in _paths(rows, "denied") if not path.startswith(_OURS)),
            wrote=_paths(rows, "wrote"),
            folder=str(folder.path),
        ), own

    def _pace(
        self, reference: FailureIdentity | None, ended: CommandEnd, folder: RunFolder
    ) -> tuple[Outcome, FailureIdentity | None, float]:
        """Return the outcome, failure and seconds per step of a run that did not fail, compared with the reference."""
        found = step_time.pace(folder.path, ended.seconds if ended.status == 0 else None, ended.others)
        if found is None or (reference is not None and reference.type != found.of):
            return "timeout" if ended.status is None else "other", None, 0.0
        if found.busy and reference is None:
            raise UsageError(
                f"isolate --slow: other programs have {ended.others:.0%} of this host's work, and ranks wait for a "
                "processor most of the time; try it when the host is quiet"
            )
        if found.busy:
            return "other", None, 0.0
        if step_time.is_slow(found, reference, self._choices.slow_above):
            return "same", step_time.failure(found, folder.path), found.seconds
        return "ok", None, found.seconds

    def _outcome(
        self, reference: FailureIdentity | None, ended: CommandEnd, saw: Mapping[str, str], folder: RunFolder
    ) -> tuple[Outcome, FailureIdentity | None]:
        status = ended.status
        if status is None:
            return "timeout", None
        if status == 0 and self._choices.recorded is not None:
            try:
                failure = recording_diff.difference(self._choices.recorded, folder.path.parent / "record")
            except UsageError:  # nothing was recorded
                if reference is None:
                    raise
                return "other", None
        elif status == 0:
            failure = None
        else:
            world = int(saw.get("world", "0") or 0) or _records(folder)
            failure = of_case(case_of(folder), printed_output(folder), status, world)
        if failure is None:
            return "ok", None
        return "same" if reference is None or same_failure(reference, failure) else "other", failure

    def _places(self, rows: list[dict[str, str]], place: Path) -> dict[str, tuple[str, ...]]:
        """Return part -> lines of the user's files, not of the copy."""
        found: dict[str, dict[str, None]] = {}
        for row in rows:
            if at := row.get("at", ""):
                for copy in {str(place / "work"), os.path.realpath(place / "work")}:
                    at = at.replace(f"{copy}/", f"{self._home}/")
                found.setdefault(row["name"], {})[clean(at)] = None
        return {name: tuple(places)[:8] for name, places in found.items()}

    def _is_proven(
        self,
        name: str,
        setting: Mapping[str, str],
        rows: list[dict[str, str]],
        saw: Mapping[str, str],
        folder: RunFolder,
    ) -> bool:
        """True if the processes noted the change."""
        made = {row["name"] for row in rows if row["kind"] == "set"}
        lost = {row["name"] for row in rows if row["kind"] == "lost"}
        if name in (RANKS, NODES):
            nodes = int(setting.get(NODES, self._job.agents))
            of_all = (self._job.ranks or 1) * self._job.agents
            wanted_world = str(nodes * int(setting[RANKS]) if RANKS in setting else of_all)
            told = saw.get("world", "") or str(_records(folder) or "")
            return told == wanted_world or (wanted_world == "1" and not told and "process" in saw)  # needs no group
        if name.startswith(VERSION):
            return name in made and name not in lost
        if name.startswith(ENVIRONMENT):
            return name in made and name not in lost
        factor = self._factors[name]
        wanted = {f"environment.{n}" for n in factor.environment} | ({knob(factor)} - {""})
        return wanted <= made and not wanted & lost


def case_of(folder: RunFolder) -> Case:
    """Return the verdict of a run, or a case without one."""
    try:
        return msgspec.json.decode(state_dir.read_start(folder.verdict, FOUND_LIMIT), type=Case)
    except (OSError, ValueError):
        return Case(verdict=Verdict(kind="not_understood", summary="No rank was seen."))


def snapshot_of(run: Run) -> Snapshot | None:
    """Return the snapshot captured in a failed run, or None."""
    try:
        data = state_dir.read_start(Path(run.folder).parent / "state" / state_dir.LAST, FOUND_LIMIT)
        return msgspec.json.decode(data, type=LastFailure).snapshot
    except (OSError, ValueError):
        return step_time.snapshot(Path(run.folder)) if run.failure is not None and run.failure.how == "slow" else None


def _records(folder: RunFolder) -> int:
    """Return the world size that all records state, or 0 if unknown."""
    sizes = {record.world_size for record in folder.records() if record.world_size}
    return sizes.pop() if len(sizes) == 1 else 0


def seeds(rows: list[dict[str, str]]) -> str | None:
    """Return rank 0's seed if ranks have set unequal seeds, or None."""
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["kind"] == "saw" and row["name"].startswith("seed.") and row.get("rank"):
            first.setdefault(row["name"], {}).setdefault(row["rank"], row.get("value", ""))
    unequal = [ranks for ranks in first.values() if len(set(ranks.values())) > 1]
    return next((ranks.get("0", "") for ranks in unequal), None)


def _paths(rows: list[dict[str, str]], kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(row["name"]) for row in rows if row["kind"] == kind))[:100]
