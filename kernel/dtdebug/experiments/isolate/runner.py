"""Runs the job once with changes: in a copy of the working directory, watched by `dtdebug run`, with limits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dtdebug.errors import UsageError
from dtdebug.experiments.isolate import memory_limits, step_time, workspace
from dtdebug.experiments.isolate.cpu_contention import HostLoad
from dtdebug.experiments.isolate.environment_changes import Paths, Seeds, run_variables
from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug.experiments.isolate.inside.record_writer import LONGER
from dtdebug.experiments.isolate.job_command import JobCommand, move_paths
from dtdebug.experiments.isolate.kill_run import clear
from dtdebug.experiments.isolate.package_versions import Releases
from dtdebug.experiments.isolate.run_history import OutOfBudgetError
from dtdebug.experiments.isolate.run_outcome import FOUND_LIMIT, CommandEnd, RunReader
from dtdebug.experiments.isolate.run_types import NODES, RANKS, VERSION, Choices, Run
from dtdebug.storage import state_dir
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.knowledge import factors

_MORE: dict[str, tuple[str, ...]] = {"fails": (), "slow": ("--watch",), "differs": ("--data", "0")}
_LOOK = 2.0
"""Seconds between two measurements of a run's speed."""


class Runner:
    """Runner of a job, in folders below a given one."""

    def __init__(
        self, job: JobCommand, home: Path, folder: Path, choices: Choices, texts: Mapping[Path, str] | None = None
    ) -> None:
        """Prepare runs of a job; `texts`: other texts for files of each copy, by their path in it."""
        self._texts = texts or {}
        self._job, self._home, self._folder, self._choices = job, home, folder, choices
        self._begun = time.time()
        self._count = len(list(folder.glob("run-*")))
        self._factors = {f.id: f for f in factors.load()}
        self._reader = RunReader(job, home, choices, self._factors)
        self._seeds = Seeds(recorded=choices.seeds)
        self._releases: Releases | None = None

    def run(self, setting: Mapping[str, str], reference: FailureIdentity | None, limit: float) -> Run:
        """Run the job with these changes, for at most `limit` seconds.

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
            except UsageError as error:  # each was available alone
                print(f"dtdebug {error}", file=sys.stderr)
                gone = tuple(name for name in setting if name.startswith(VERSION))
                return Run(factors=dict(setting), outcome="other", seconds=0.0, unproven=gone)
            return self._run_watched(
                setting, reference, limit, Paths(home=self._home, copy=copy, place=place, overlay=overlay)
            )
        finally:
            if not self._choices.in_place:
                shutil.rmtree(copy, ignore_errors=True)

    def available(self, wanted: Mapping[str, str], interpreter: str, limit: float) -> tuple[dict[str, str], list[str]]:
        """Return the versions that can be installed, each alone, and errors for the others."""
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
        """Delete files that only the search needed."""
        if self._releases is not None:
            self._releases.close()

    def _overlay(self, setting: Mapping[str, str], limit: float) -> str:
        wanted = {name.removeprefix(VERSION): to for name, to in setting.items() if name.startswith(VERSION)}
        return self._releases.path(wanted, limit) if wanted and self._releases is not None else ""

    def _copy(self, target: Path) -> None:
        try:
            workspace.copy(self._home, target)
            for name, text in self._texts.items():
                (target / name).unlink(missing_ok=True)  # it may be a link to the user's
                (target / name).write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            raise UsageError(f"isolate: {error.filename or self._home}: can't be copied: {error.strerror}") from None

    def _run_watched(
        self, setting: Mapping[str, str], reference: FailureIdentity | None, limit: float, paths: Paths
    ) -> Run:
        nodes, ranks = (int(setting[name]) if name in setting else None for name in (NODES, RANKS))
        job, folder = self._job.with_counts(nodes, ranks), RunFolder(paths.place / "run")
        chosen = [self._factors[name] for name in setting if name in self._factors]
        hang_after = self._choices.hang_after
        if any(f.knob == "group.timeout" for f in chosen):  # the time-out should come before the hang is detected
            hang_after *= LONGER
        command = [
            *(sys.executable, "-P", "-m", "dtdebug", "run", "--quiet", "--stop-on-hang", "--stop-on-not-understood"),
            *("--hang-after", f"{hang_after:g}", "--folder", str(folder.path)),
            *_MORE[self._choices.kind],
            *(("--record", str(paths.place / "record")) if self._choices.kind == "differs" else ()),
            *("--", *move_paths(job, self._home, paths.copy)),
        ]
        begun, process, company = time.monotonic(), None, HostLoad()
        try:  # an interrupt may arrive before the process is assigned
            process = subprocess.Popen(
                command,
                cwd=paths.copy,
                env=run_variables(setting, chosen, paths, self._choices, seeds=self._seeds, begun=self._begun),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            status = self._wait(process, limit, folder, company)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            seconds = time.monotonic() - begun
            clear(process, paths.place)
        if status in (126, 127) and not folder.output.exists():
            raise UsageError(f"isolate: {self._job.words[0]}: can't be started")
        if status:
            self._map_paths(folder, paths.place, paths.copy)
        run, seed = self._reader.read(setting, reference, CommandEnd(status, round(seconds, 2), company.share), folder)
        if seed:
            self._seeds = Seeds(own=seed, recorded=self._choices.seeds)
        return run

    def _wait(self, process: subprocess.Popen[bytes], limit: float, folder: RunFolder, company: HostLoad) -> int | None:
        """Return the exit status; None for a slow job once enough was measured.

        Raises:
            subprocess.TimeoutExpired: it has not ended in time.
            OutOfBudgetError: it nearly exhausted this host's memory or disk.

        """
        until = time.monotonic() + limit
        while time.monotonic() < until:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(_LOOK, max(0.1, until - time.monotonic())))
            if what := memory_limits.used_up(folder.path.parent):
                raise OutOfBudgetError(f"a run was ended, for it nearly used up {what}")
            if self._choices.kind != "slow":
                continue
            company.look(process.pid)
            found = step_time.pace(folder.path, None)
            if found is not None and found.enough:
                return None
        raise subprocess.TimeoutExpired(process.args, limit)

    def _map_paths(self, folder: RunFolder, place: Path, copy: Path) -> None:
        """Replace the copy's paths by the user's in the results, since the copy is deleted soon."""
        if copy == self._home:
            return
        for path in (folder.verdict, folder.output, place / "state" / state_dir.LAST):
            with suppress(OSError):
                data = state_dir.read_start(path, FOUND_LIMIT)
                for name in {str(copy), os.path.realpath(copy)}:
                    data = data.replace(name.encode(), str(self._home).encode())
                state_dir.write(path, data)
