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
from dtdebug.isolate import workspace
from dtdebug.isolate.command import Job, moved, searched
from dtdebug.isolate.identity import Failure, of_case, same
from dtdebug.isolate.inside import notes
from dtdebug.job.collect import printed
from dtdebug.last import Last
from dtdebug.probe.watch import end
from dtdebug.records.folder import RunFolder
from dtdebug_taxonomy import factors
from dtdebug_taxonomy.case import Case
from dtdebug_taxonomy.ranks import Verdict
from dtdebug_taxonomy.snapshot import Snapshot

Outcome = Literal["same", "ok", "other", "timeout"]
RANKS, ENVIRONMENT = "ranks", "environment."
"""Names of what is no factor of a file: the number of ranks, and a variable that is taken away."""
_OFFLINE = {"WANDB_MODE": "offline", "MLFLOW_TRACKING_URI": "file:mlruns", "COMET_MODE": "OFFLINE"}
"""Nothing that a run measures is sent anywhere."""
_PATIENCE = 5.0
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


class Runner:
    """Runs a job in folders below one of its own."""

    def __init__(self, job: Job, home: Path, folder: Path, choices: Choices) -> None:
        self._job, self._home, self._folder, self._choices = job, home, folder, choices
        self._begun = time.time()
        self._count = len(list(folder.glob("run-*")))
        self._factors = {f.id: f for f in factors.load()}
        self._seed = "0"
        """That of rank 0 in the last run that changed none."""

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
            return self._watched(setting, reference, limit, (place, copy))
        finally:
            if not self._choices.in_place:
                shutil.rmtree(copy, ignore_errors=True)

    def _copy(self, target: Path) -> None:
        try:
            workspace.copy(self._home, target)
        except OSError as error:
            raise UsageError(f"isolate: {error.filename or self._home}: can't be copied: {error.strerror}") from None

    def _watched(
        self, setting: Mapping[str, str], reference: Failure | None, limit: float, paths: tuple[Path, Path]
    ) -> Run:
        place, copy = paths
        job = self._job.with_ranks(int(setting[RANKS])) if RANKS in setting else self._job.words
        folder = RunFolder(place / "run")
        command = [
            *(sys.executable, "-P", "-m", "dtdebug", "run", "--quiet", "--stop-on-hang", "--stop-on-not-understood"),
            *("--hang-after", f"{self._choices.hang_after:g}", "--folder", str(folder.path)),
            *("--", *moved(job, self._home, copy)),
        ]
        begun, process = time.monotonic(), None
        try:  # an interrupt may come when the process has begun and is not known yet
            process = subprocess.Popen(
                command,
                cwd=copy,
                env=self._environment(setting, place, copy),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            status = process.wait(limit)
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

    def _environment(self, setting: Mapping[str, str], place: Path, copy: Path) -> dict[str, str]:
        taken = {name.removeprefix(ENVIRONMENT) for name in setting if name.startswith(ENVIRONMENT)}
        chosen = [self._factors[name] for name in setting if name in self._factors]
        added = {name: value for f in chosen for name, value in f.environment.items()}
        (place / "notes").mkdir(mode=0o700)
        told = {
            "notes": str(place / "notes"),
            "change": {knob: self._seed if knob == "seeds" else f.value for f in chosen if (knob := _knob(f))},
            "environment": {**added, **dict.fromkeys(taken)},
            "ours": [] if self._choices.in_place else [str(copy), str(place), *self._choices.may_write],
            "begun": self._begun,
        }
        (place / "change.json").write_text(json.dumps(told), encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if name not in taken and name != "DTDEBUG_RUN"}
        path = [BOOTSTRAP, *filter(None, [searched(kept, self._home, copy)])]
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
        status, seconds = ended
        rows = list(notes.read(folder.path.parent / "notes"))
        saw = {row["name"]: row.get("value", "") for row in rows if row["kind"] == "saw"}
        if (seed := _seeds(rows)) is not None:
            saw["seeds"] = seed
            if seed.isdecimal() and len(seed) < 10 and "equal-seeds" not in setting:  # NumPy takes 32 bits
                self._seed = seed
        failure: Failure | None = None
        if status is None:
            outcome: Outcome = "timeout"
        elif status == 0:
            outcome = "ok"
        else:
            world = int(saw.get("world", "0") or 0) or _records(folder)
            failure = of_case(case_of(folder), printed(folder), status, world)
            outcome = "same" if reference is None or same(reference, failure) else "other"
        return Run(
            factors=dict(setting),
            outcome=outcome,
            seconds=seconds,
            failure=failure,
            unproven=tuple(name for name in setting if not self._is_proven(name, setting[name], rows, saw, folder)),
            saw=saw,
            denied=_paths(rows, "denied"),
            wrote=_paths(rows, "wrote"),
            folder=str(folder.path),
        )

    def _mapped(self, folder: RunFolder, place: Path, copy: Path) -> None:
        """Lets what was found name the user's files, not those of the copy, which is gone soon."""
        if copy == self._home:
            return
        for path in (folder.verdict, folder.output, place / "state" / state.LAST):
            with suppress(OSError):
                data = state.read(path, _FOUND_LIMIT)
                for name in {str(copy), os.path.realpath(copy)}:
                    data = data.replace(name.encode(), str(self._home).encode())
                state.write(path, data)

    def _is_proven(
        self, name: str, value: str, rows: list[dict[str, str]], saw: Mapping[str, str], folder: RunFolder
    ) -> bool:
        """The change was seen in the processes."""
        made = {row["name"] for row in rows if row["kind"] == "set"}
        lost = {row["name"] for row in rows if row["kind"] == "lost"}
        if name == RANKS:
            told = saw.get("world", "") or str(_records(folder) or "")
            return told == value or (value == "1" and not told and "process" in saw)  # alone it may need no group
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
        return msgspec.json.decode(state.read(folder.verdict, _FOUND_LIMIT), type=Case)
    except (OSError, ValueError):
        return Case(verdict=Verdict(kind="not_understood", summary="No rank was seen."))


def snapshot_of(run: Run) -> Snapshot | None:
    """What was captured of a run that failed."""
    try:
        data = state.read(Path(run.folder).parent / "state" / state.LAST, _FOUND_LIMIT)
        return msgspec.json.decode(data, type=Last).snapshot
    except (OSError, ValueError):
        return None


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
