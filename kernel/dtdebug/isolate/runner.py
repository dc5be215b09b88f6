"""One run of the job with something changed: in a copy of the working directory, watched by `dtdebug run`, bounded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from dtdebug import state
from dtdebug.agent.arming import BOOTSTRAP
from dtdebug.clean import clean
from dtdebug.errors import UsageError
from dtdebug.isolate import differs, pace, workspace
from dtdebug.isolate.command import Job, moved, searched
from dtdebug.isolate.differs import NOT_SET
from dtdebug.isolate.identity import Failure, of_case, same
from dtdebug.isolate.inside import notes
from dtdebug.isolate.releases import Releases
from dtdebug.job.collect import printed
from dtdebug.last import Last
from dtdebug.probe.watch import end
from dtdebug.records.folder import RunFolder
from dtdebug_taxonomy import factors
from dtdebug_taxonomy.case import Case
from dtdebug_taxonomy.ranks import Verdict
from dtdebug_taxonomy.snapshot import Snapshot

Outcome = Literal["same", "ok", "other", "timeout"]
RANKS, NODES, ENVIRONMENT, VERSION = "ranks", "nodes", "environment.", "version."
"""Names of what is no factor of a file: the number of ranks, that of torchrun's agents, a variable of the environment,
a package in another version."""
_OFFLINE = {"WANDB_MODE": "offline", "MLFLOW_TRACKING_URI": "file:mlruns", "COMET_MODE": "OFFLINE"}
"""Nothing that a run measures is sent anywhere."""
_MORE: dict[str, tuple[str, ...]] = {"fails": (), "slow": ("--watch",), "differs": ("--data", "0")}
_PATIENCE, _LOOK = 5.0, 2.0
_ROUNDS, _QUIET = 8, 2
"""How often it is looked for what is left, and how often nothing must be found: a process that begins has no
environment for a moment."""
_FOUND_LIMIT = 64 << 20


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What a run has shown."""

    factors: dict[str, str]
    outcome: Outcome
    seconds: float
    failure: Failure | None = None
    unproven: tuple[str, ...] = ()
    """What was to be changed, and was not seen to be."""
    saw: dict[str, str] = {}
    """What the program uses: part -> value."""
    at: dict[str, tuple[str, ...]] = {}
    """Where: part -> `FILE:LINE` of the user's own."""
    denied: tuple[str, ...] = ()
    wrote: tuple[str, ...] = ()
    """Files outside of the copy that were there before, and that are new."""
    folder: str = ""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What the user chose for all runs."""

    hang_after: float = 30.0
    in_place: bool = False
    may_write: tuple[str, ...] = ()
    """Folders and files elsewhere that the runs may change."""
    kind: Literal["fails", "slow", "differs"] = "fails"
    """What is followed."""
    slow_above: float | None = None
    """Seconds of a step above which it is slow; else as slow as it is at first."""
    recorded: Path | None = None
    """The run that was recorded, of a job that differs from it."""
    seeds: str = ""
    """Those of its ranks."""


class Runner:
    """Runs a job in folders below one of its own."""

    def __init__(self, job: Job, home: Path, folder: Path, choices: Choices) -> None:
        self._job, self._home, self._folder, self._choices = job, home, folder, choices
        self._begun = time.time()
        self._count = len(list(folder.glob("run-*")))
        self._factors = {f.id: f for f in factors.load()}
        self._seed = "0"
        """That of rank 0 in the last run that changed none."""
        self._releases: Releases | None = None

    def run(self, setting: Mapping[str, str], reference: Failure | None, limit: float) -> Run:
        """Runs the job with these changes, for at most so many seconds.

        Raises:
            UsageError: the working directory can't be copied, or the command can't be started.

        """
        self._count += 1
        place = self._folder / f"run-{self._count:02}"
        place.mkdir(mode=0o700)
        copy = self._home if self._choices.in_place else place / "work"
        try:
            if not self._choices.in_place:
                self._copy(copy)
            try:
                overlay = self._overlay(setting, limit)
            except UsageError as error:  # alone each of them could be had
                print(f"dtdebug {error}", file=sys.stderr)
                gone = tuple(name for name in setting if name.startswith(VERSION))
                return Run(factors=dict(setting), outcome="other", seconds=0.0, unproven=gone)
            return self._watched(setting, reference, limit, (place, copy, overlay))
        finally:
            if not self._choices.in_place:
                shutil.rmtree(copy, ignore_errors=True)

    def available(self, wanted: Mapping[str, str], interpreter: str, limit: float) -> tuple[dict[str, str], list[str]]:
        """Those of these versions that can be had, each alone, and why the others can't be."""
        self._releases = Releases(self._folder, interpreter)
        found, not_had = dict[str, str](), list[str]()
        for name, version in wanted.items():
            try:
                self._releases.path({name: version}, limit)
                found[name] = version
            except UsageError as error:
                not_had.append(str(error).removeprefix("isolate --version "))
        return found, not_had

    def close(self) -> None:
        """Deletes what the search needed and the user does not."""
        if self._releases is not None:
            self._releases.close()

    def _overlay(self, setting: Mapping[str, str], limit: float) -> str:
        wanted = {name.removeprefix(VERSION): to for name, to in setting.items() if name.startswith(VERSION)}
        return self._releases.path(wanted, limit) if wanted and self._releases is not None else ""

    def _copy(self, target: Path) -> None:
        try:
            workspace.copy(self._home, target)
        except OSError as error:
            raise UsageError(f"isolate: {error.filename or self._home}: can't be copied: {error.strerror}") from None

    def _watched(
        self, setting: Mapping[str, str], reference: Failure | None, limit: float, paths: tuple[Path, Path, str]
    ) -> Run:
        place, copy, overlay = paths
        nodes, ranks = (int(setting[name]) if name in setting else None for name in (NODES, RANKS))
        job = self._job.made(nodes, ranks)
        folder = RunFolder(place / "run")
        command = [
            *(sys.executable, "-P", "-m", "dtdebug", "run", "--quiet", "--stop-on-hang", "--stop-on-not-understood"),
            *("--hang-after", f"{self._choices.hang_after:g}", "--folder", str(folder.path)),
            *_MORE[self._choices.kind],
            *(("--record", str(place / "record")) if self._choices.kind == "differs" else ()),
            *("--", *moved(job, self._home, copy)),
        ]
        begun, process = time.monotonic(), None
        try:  # an interrupt may come when the process has begun and is not known yet
            process = subprocess.Popen(
                command,
                cwd=copy,
                env=self._environment(setting, place, copy, overlay),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            status = self._wait(process, limit, folder)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            seconds = time.monotonic() - begun
            _clear(process, place)
        if status in (126, 127) and not folder.output.exists():
            raise UsageError(f"isolate: {self._job.words[0]}: can't be started")
        if status:
            self._mapped(folder, place, copy)
        return self._judged(setting, reference, (status, round(seconds, 2)), folder)

    def _wait(self, process: subprocess.Popen[bytes], limit: float, folder: RunFolder) -> int | None:
        """The exit status; of a job that is slow None as soon as enough of it was measured.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.

        """
        if self._choices.kind != "slow":
            return process.wait(limit)
        until = time.monotonic() + limit
        while time.monotonic() < until:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(_LOOK, max(0.1, until - time.monotonic())))
            found = pace.pace(folder.path, None)
            if found is not None and found.enough:
                return None
        raise subprocess.TimeoutExpired(process.args, limit)

    def _environment(self, setting: Mapping[str, str], place: Path, copy: Path, overlay: str) -> dict[str, str]:
        told_of = {n.removeprefix(ENVIRONMENT): to for n, to in setting.items() if n.startswith(ENVIRONMENT)}
        taken = {name for name, to in told_of.items() if to == NOT_SET}
        chosen = [self._factors[name] for name in setting if name in self._factors]
        added = {name: value for f in chosen for name, value in f.environment.items()}
        added |= {name: to for name, to in told_of.items() if to != NOT_SET}
        own = {"seeds": self._seed, "recorded-seed": self._choices.seeds}
        (place / "notes").mkdir(mode=0o700)
        told = {
            "notes": str(place / "notes"),
            "change": {knob: own.get(knob, f.value) for f in chosen if (knob := _knob(f))},
            "versions": {n.removeprefix(VERSION): to for n, to in setting.items() if n.startswith(VERSION)},
            "environment": {**added, **dict.fromkeys(taken)},
            "ours": [] if self._choices.in_place else [str(copy), str(place), *self._choices.may_write],
            "begun": self._begun,
        }
        (place / "change.json").write_text(json.dumps(told), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if name not in taken and name != "DTDEBUG_RUN"}
        path = [BOOTSTRAP, *filter(None, [overlay, searched(kept, self._home, copy)])]
        return {
            **kept,
            **_OFFLINE,
            **added,
            "PWD": str(copy),
            "PYTHONPATH": os.pathsep.join(path),
            "DTDEBUG_STATE": str(place / "state"),
            notes.VARIABLE: str(place / "change.json"),
        }

    def _judged(
        self,
        setting: Mapping[str, str],
        reference: Failure | None,
        ended: tuple[int | None, float],
        folder: RunFolder,
    ) -> Run:
        rows = list(notes.read_notes(folder.path.parent / "notes"))
        saw = {row["name"]: row.get("value", "") for row in rows if row["kind"] == "saw"}
        if (seed := _seeds(rows)) is not None:
            saw["seeds"] = seed
            if seed.isdecimal() and len(seed) < 10 and "equal-seeds" not in setting:  # NumPy takes 32 bits
                self._seed = seed
        if self._choices.kind == "differs":
            saw["recorded"] = str(self._choices.recorded)
        outcome, failure = self._outcome(reference, ended, saw, folder)
        return Run(
            factors=dict(setting),
            outcome=outcome,
            seconds=ended[1],
            failure=failure,
            unproven=tuple(name for name in setting if not self._is_proven(name, setting, rows, saw, folder)),
            saw=saw,
            at=self._places(rows, folder.path.parent),
            denied=_paths(rows, "denied"),
            wrote=_paths(rows, "wrote"),
            folder=str(folder.path),
        )

    def _outcome(
        self, reference: Failure | None, ended: tuple[int | None, float], saw: Mapping[str, str], folder: RunFolder
    ) -> tuple[Outcome, Failure | None]:
        status, seconds = ended
        if self._choices.kind == "slow" and not status:
            found = pace.pace(folder.path, seconds if status == 0 else None)
            if found is None or (reference is not None and reference.type != found.of):
                return "timeout" if status is None else "other", None
            slow = pace.is_slow(found, reference, self._choices.slow_above)
            return ("same", pace.failure(found, folder.path)) if slow else ("ok", None)
        if status is None:
            return "timeout", None
        if status == 0 and self._choices.recorded is not None:
            try:
                failure = differs.difference(self._choices.recorded, folder.path.parent / "record")
            except UsageError:  # nothing was recorded
                if reference is None:
                    raise
                return "other", None
        elif status == 0:
            failure = None
        else:
            world = int(saw.get("world", "0") or 0) or _records(folder)
            failure = of_case(case_of(folder), printed(folder), status, world)
        if failure is None:
            return "ok", None
        return "same" if reference is None or same(reference, failure) else "other", failure

    def _mapped(self, folder: RunFolder, place: Path, copy: Path) -> None:
        """Lets what was found name the user's files, not those of the copy, which is gone soon."""
        if copy == self._home:
            return
        for path in (folder.verdict, folder.output, place / "state" / state.LAST):
            with suppress(OSError):
                data = state.read_start(path, _FOUND_LIMIT)
                for name in {str(copy), os.path.realpath(copy)}:
                    data = data.replace(name.encode(), str(self._home).encode())
                state.write(path, data)

    def _places(self, rows: list[dict[str, str]], place: Path) -> dict[str, tuple[str, ...]]:
        """Lines of the user's files, not of the copy."""
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
        """The change was seen in the processes."""
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
        wanted = {f"environment.{n}" for n in factor.environment} | ({_knob(factor)} - {""})
        return wanted <= made and not wanted & lost


def _knob(factor: factors.Factor) -> str:
    return factor.knob or next((name for name in factor.uses if name.startswith("argument.")), "")


def case_of(folder: RunFolder) -> Case:
    """What was found of a run; where nothing was, a case that says so."""
    try:
        return msgspec.json.decode(state.read_start(folder.verdict, _FOUND_LIMIT), type=Case)
    except (OSError, ValueError):
        return Case(verdict=Verdict(kind="not_understood", summary="No rank was seen."))


def snapshot_of(run: Run) -> Snapshot | None:
    """What was captured of a run that failed."""
    try:
        data = state.read_start(Path(run.folder).parent / "state" / state.LAST, _FOUND_LIMIT)
        return msgspec.json.decode(data, type=Last).snapshot
    except (OSError, ValueError):
        return pace.snapshot(Path(run.folder)) if run.failure is not None and run.failure.how == "slow" else None


def _records(folder: RunFolder) -> int:
    """Ranks that have left a record, by the size that they all give; 0 where they gave none."""
    sizes = {record.world_size for record in folder.records() if record.world_size}
    return sizes.pop() if len(sizes) == 1 else 0


def _seeds(rows: list[dict[str, str]]) -> str | None:
    """The seed of rank 0, or what else it gave, where ranks have set unequal seeds; None where they have not."""
    first: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["kind"] == "saw" and row["name"].startswith("seed.") and row.get("rank"):
            first.setdefault(row["name"], {}).setdefault(row["rank"], row.get("value", ""))
    unequal = [ranks for ranks in first.values() if len(set(ranks.values())) > 1]
    return next((ranks.get("0", "") for ranks in unequal), None)


def _paths(rows: list[dict[str, str]], kind: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(row["name"]) for row in rows if row["kind"] == kind))[:100]


def _clear(process: subprocess.Popen[bytes] | None, place: Path) -> None:
    """Ends all that the run has started, also what has left its session: it has our variable."""
    if process is not None:
        if process.poll() is None:
            end([process.pid], _PATIENCE)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
    mark = str(place / "change.json")
    quiet = 0
    for _ in range(_ROUNDS):
        rest = _marked(mark)
        quiet = 0 if rest else quiet + 1
        if quiet == _QUIET:
            return
        end(rest, _PATIENCE)


def _marked(mark: str) -> list[int]:
    import psutil

    found = []
    for other in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if other.environ().get(notes.VARIABLE) == mark:
                found.append(other.pid)
    return found
