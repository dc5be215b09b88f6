"""Runs the script of a lab under `dtdebug run`, within bounds, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from dtdebug.experiments.invariants.result import watch_result
from dtdebug.experiments.nonfinite.judge import ORIGIN
from dtdebug.experiments.nonfinite.result import nonfinite_result
from dtdebug.experiments.parity.result import parity_result
from dtdebug.live.job import conclude, recent_runs
from dtdebug.live.probe.processes import variables
from dtdebug.privacy.sanitize import plain
from dtdebug.storage import VARIABLE
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.knowledge.labs import Lab
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.model.training import Violation
from dtdebug_taxonomy.presentation.case_json import Case

_PATIENCE = 15.0
"""Seconds that a job has to end after it was asked to."""
_QUIET = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
_REPORT_LIMIT = 64 << 20
_RESULTS = (watch_result, parity_result, nonfinite_result)


class LabRun(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run."""

    status: int | None
    """Exit status; None if it was ended at its time limit."""
    seconds: float
    output: str
    """Output of the job."""
    found: Case | None = None
    """Result of `dtdebug run`; None if it reported nothing."""
    violated: tuple[Violation, ...] = ()
    """Violated training invariants, if the lab is watched."""
    said: str = ""
    """Messages of `dtdebug run` itself, if they were not shown at once."""

    def works(self, lab: Lab) -> bool:
        """True if the work was done, the job succeeded, and all training invariants held."""
        return self.status == 0 and lab.works in self.output and not self.violated

    def snapshot(self, lab: Lab) -> Snapshot:
        """Return everything known about the run, with the description that a user would give."""
        found = self.found
        return Snapshot(
            situation=lab.says,
            output=plain(self.output),
            ranks=found.ranks if found else (),
            verdict=found.verdict if found else None,
            watched=self.violated,
        )


def execute(lab: Lab, script: Path, *, show: bool = False) -> LabRun:
    """Run a script as its lab specifies, in a scratch folder; optionally show its output as it comes."""
    with tempfile.TemporaryDirectory(prefix="dtdebug-lab-", ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        for part in ("work", "tmp"):
            (home / part).mkdir()
        run = RunFolder((_make_folder() if show else None) or home / "run")
        begun = time.monotonic()
        with (home / "said").open("w+", encoding="utf-8", errors="replace") as said:
            with (
                _leaving_in_order(),
                subprocess.Popen(
                    _command(lab, script, run),
                    cwd=home / "work",
                    env=_environment(home / "tmp"),
                    stdin=subprocess.DEVNULL,
                    stdout=None if show else subprocess.DEVNULL,
                    stderr=None if show else said,
                    start_new_session=not show,  # shown, it stays in the terminal's group: Ctrl-C reaches it
                ) as job,
                _kill_strays(job, run),
            ):
                status = _wait(job, lab.limit_s, shown=show)
            said.seek(0)
            words = "\n".join(line for line in said.read().splitlines() if line.startswith("dtdebug:"))
        seconds = time.monotonic() - begun
        seen = [found for read in _RESULTS if (found := read(run.path)) is not None]
        return LabRun(
            status=status, seconds=seconds, output=conclude.printed_output(run), found=_read_case(run), said=words,
            violated=tuple(v for found in seen for v in found.violations),
        )  # fmt: skip


def command(lab: Lab, script: Path, python: str = sys.executable) -> list[str]:
    """Return the command that runs a lab's script."""
    words = {"python": python, "ranks": str(lab.ranks), "script": str(script), "folder": str(script.parent)}
    return [word.format_map(words) for word in lab.command]


def _command(lab: Lab, script: Path, run: RunFolder) -> list[str]:
    options = ["--folder", str(run.path), "--hang-after", f"{lab.hang_after_s:g}", "--stop-on-not-understood"]
    options += [instrument(lab.violates)] if lab.violates else []
    return [sys.executable, "-P", "-m", "dtdebug", "run", *options, "--", *command(lab, script)]


def instrument(name: str) -> str:
    """Return the option of `dtdebug run` that finds a violation by its name."""
    return "--parity" if name.startswith("parity-") else "--nan" if name == ORIGIN else "--watch"


def _environment(temporary: Path) -> dict[str, str]:
    """Return the user's environment without variables that affect the run; torchrun leaves temporary files behind."""
    foreign = (VARIABLE, "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return {**kept, **_QUIET, "TMPDIR": str(temporary)}


def _make_folder() -> Path | None:
    """Create a folder for the collected files that outlives the run, so that the user can send it with a report."""
    try:
        recent_runs.forget_old()
        recent_runs.parent().mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=recent_runs.parent(), prefix="run-"))
    except OSError:
        return None


def _wait(job: subprocess.Popen[bytes], seconds: float, *, shown: bool) -> int | None:
    try:
        with suppress(subprocess.TimeoutExpired):
            return job.wait(seconds)
    except KeyboardInterrupt:
        if shown:  # the terminal has sent it to the job, too, which still has output
            with suppress(subprocess.TimeoutExpired):
                job.wait(_PATIENCE)
        raise
    job.terminate()
    with suppress(subprocess.TimeoutExpired):
        job.wait(_PATIENCE)
    return None


@contextmanager
def _leaving_in_order() -> Iterator[None]:
    """Turn a request to end into an exception, so that started processes are ended, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {name: signal.signal(name, leave) for name in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def _kill_strays(job: subprocess.Popen[bytes], run: RunFolder) -> Iterator[None]:
    """Kill all processes of the run on exit, including ranks in separate sessions."""
    try:
        yield
    finally:
        here = str(run.path.absolute())
        family = []
        with suppress(psutil.Error):
            family = psutil.Process(job.pid).children(recursive=True)
        strays = [p for p in psutil.process_iter() if variables(p.pid).get(VARIABLE) == here]
        if job.poll() is None:
            job.kill()
        for process in {*family, *strays}:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs([*family, *strays], timeout=_PATIENCE)


def _read_case(run: RunFolder) -> Case | None:
    try:
        return msgspec.json.decode(run.verdict.read_bytes()[:_REPORT_LIMIT], type=Case)
    except (OSError, ValueError):
        return None
