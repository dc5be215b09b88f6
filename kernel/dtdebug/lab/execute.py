"""Runs the script of a lab below `dtdebug run`, within bounds, and leaves nothing behind."""

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

from dtdebug.clean import plain
from dtdebug.job import collect, runs
from dtdebug.probe.processes import variables
from dtdebug.records import VARIABLE
from dtdebug.records.folder import RunFolder
from dtdebug.watch.result import watched
from dtdebug_taxonomy.case import Case
from dtdebug_taxonomy.labs import Lab
from dtdebug_taxonomy.snapshot import Snapshot
from dtdebug_taxonomy.watched import Violation

_PATIENCE = 15.0
"""Seconds in which a job that was told to end may do so."""
_QUIET = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
_REPORT_LIMIT = 64 << 20


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, and what is known of it."""

    status: int | None
    """Exit status; None where it was ended at its limit."""
    seconds: float
    output: str
    """What the job printed."""
    found: Case | None = None
    """What `dtdebug run` found; None where it had nothing to say."""
    violated: tuple[Violation, ...] = ()
    """What did not hold while it trained, if the lab is watched."""
    said: str = ""
    """What `dtdebug run` itself said, where it was not shown at once."""

    def works(self, lab: Lab) -> bool:
        """The work was done, the job has ended well, and what must hold while it trains has held."""
        return self.status == 0 and lab.works in self.output and not self.violated

    def snapshot(self, lab: Lab) -> Snapshot:
        """All that is known, with what a user would say."""
        found = self.found
        return Snapshot(
            situation=lab.says,
            output=plain(self.output),
            ranks=found.ranks if found else (),
            verdict=found.verdict if found else None,
            watched=self.violated,
        )


def execute(lab: Lab, script: Path, *, show: bool = False) -> Ran:
    """Runs a script as its lab says, in a scratch folder; shows its output as it comes if wanted."""
    with tempfile.TemporaryDirectory(prefix="dtdebug-lab-", ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        for part in ("work", "tmp"):
            (home / part).mkdir()
        run = RunFolder((_kept() if show else None) or home / "run")
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
                _ended(job, run),
            ):
                status = _wait(job, lab.limit_s, shown=show)
            said.seek(0)
            words = "\n".join(line for line in said.read().splitlines() if line.startswith("dtdebug:"))
        seconds = time.monotonic() - begun
        seen = watched(run.path)
        return Ran(
            status=status, seconds=seconds, output=collect.printed_output(run), found=_found(run), said=words,
            violated=seen.violations if seen is not None else (),
        )  # fmt: skip


def command(lab: Lab, script: Path, python: str = sys.executable) -> list[str]:
    """The command that runs a lab's script."""
    words = {"python": python, "ranks": str(lab.ranks), "script": str(script), "folder": str(script.parent)}
    return [word.format_map(words) for word in lab.command]


def _command(lab: Lab, script: Path, run: RunFolder) -> list[str]:
    options = ["--folder", str(run.path), "--hang-after", f"{lab.hang_after_s:g}", "--stop-on-hang"]
    options += ["--watch"] if lab.violates else []
    return [sys.executable, "-m", "dtdebug", "run", *options, "--", *command(lab, script)]


def _environment(temporary: Path) -> dict[str, str]:
    """That of the user, without what would make the run another one; torchrun never removes its temporary files."""
    foreign = (VARIABLE, "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "GLOO_SOCKET_IFNAME")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return {**kept, **_QUIET, "TMPDIR": str(temporary)}


def _kept() -> Path | None:
    """A place for what is collected that outlives the run: who has seen the report may want to send it."""
    try:
        runs.forget_old()
        runs.parent().mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=runs.parent(), prefix="run-"))
    except OSError:
        return None


def _wait(job: subprocess.Popen[bytes], seconds: float, *, shown: bool) -> int | None:
    try:
        with suppress(subprocess.TimeoutExpired):
            return job.wait(seconds)
    except KeyboardInterrupt:
        if shown:  # the terminal has sent it to the job, too, which still has something to say
            with suppress(subprocess.TimeoutExpired):
                job.wait(_PATIENCE)
        raise
    job.terminate()
    with suppress(subprocess.TimeoutExpired):
        job.wait(_PATIENCE)
    return None


@contextmanager
def _leaving_in_order() -> Iterator[None]:
    """A request to end becomes an exception, so that what was started is ended, too."""
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
def _ended(job: subprocess.Popen[bytes], run: RunFolder) -> Iterator[None]:
    """Whatever happens, no process of the run is left: ranks are in sessions of their own."""
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


def _found(run: RunFolder) -> Case | None:
    try:
        return msgspec.json.decode(run.verdict.read_bytes()[:_REPORT_LIMIT], type=Case)
    except (OSError, ValueError):
        return None
