"""Runs planted jobs as users do: below `dtdebug run`, or without dtdebug and asked afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil
from planting import FOLDER, PROGRAMS, Fault, draw, plant, shape, tracing

HANG_AFTER = 6
PATIENCE = 45.0
"""Seconds after the fault in which a job that hangs may be reported, before it is interrupted as from a terminal."""
LOOKED_AT = 10.0
"""Seconds after the fault at which a job that was started without dtdebug is asked."""
SETTLES = 5.0
"""Seconds after which a job that was about to end when it was looked at has ended."""
BOUND = 150.0
"""Seconds after which a job is given up."""
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
DTDEBUG = [sys.executable, "-m", "dtdebug"]


@dataclass
class Outcome:
    """What became of a job, and what was said of it."""

    fired: bool
    status: int | None
    """Of what was started: torchrun, or `dtdebug run`."""
    interrupted: bool
    asked: str
    """`run`, `attach` or `diagnose`."""
    report: dict[str, Any] | None
    failed: str = ""
    """What dtdebug itself printed where there is no report."""
    after: float = 0.0
    """Seconds between the fault and the end of the job."""
    printed: str = ""


def prepare(seed: int, folder: Path, most: int) -> Fault:
    """Draws the fault; runs the healthy program once to know its lines, unless that is known."""
    program, world, *_ = shape(seed, most)
    return draw(seed, trace(program, world, folder), most)


def trace(program: str, world: int, folder: Path) -> dict[int, dict[str, Any]]:
    """Which lines each rank of the healthy program runs, and which collectives it calls."""
    text = b"".join(path.read_bytes() for path in sorted((FOLDER / "programs" / program).glob("*.py")))
    kept = folder / "traces" / f"{program}x{world}-{hashlib.sha256(text).hexdigest()[:12]}"
    if not (kept / "done").exists():
        shutil.rmtree(kept, ignore_errors=True)
        script = tracing(program, kept)
        with _Job([*TORCHRUN, str(world), str(script)], kept) as job:
            if job.wait(BOUND) != 0:
                raise RuntimeError(f"the healthy {program} failed: {kept}/output.log")
        (kept / "done").touch()
    return {rank: json.loads((kept / "records" / f"traced{rank}.json").read_text()) for rank in range(world)}


def observe(fault: Fault, folder: Path) -> Outcome:
    """Runs the job of a fault and has it diagnosed."""
    shutil.rmtree(folder, ignore_errors=True)
    script = plant(fault, folder)
    os.mkfifo(folder / "feed")
    with (folder / "cache.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (_armed if fault.armed else _plain)(fault, script, folder)


class _Job:
    """A command in a process group of its own; whatever it started ends with it."""

    def __init__(self, command: list[str], folder: Path) -> None:
        variables = os.environ | {
            "PYTHONPATH": str(folder / "lib" / "python3" / "site-packages"), "OMP_NUM_THREADS": "1",
            "DTDEBUG_STATE": str(folder / "state"), "TORCH_CPP_LOG_LEVEL": "ERROR", "PYTHONFAULTHANDLER": "",
        }  # fmt: skip
        with (folder / "output.log").open("wb") as output:
            self._process = subprocess.Popen(
                ["nice", "-n", "10", *command], env=variables, stdout=output, stderr=output,
                stdin=subprocess.DEVNULL, process_group=0, cwd=folder,
            )  # fmt: skip
        self.pid = self._process.pid
        self._started: set[psutil.Process] = set()

    def poll(self) -> int | None:
        """Its exit status if it has ended."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self._started |= set(psutil.Process(self.pid).children(recursive=True))
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Its exit status, if it ends in time."""
        until = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        return self.poll()

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        os.killpg(self.pid, signal.SIGINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.poll()
        for process in self._started:
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def _armed(fault: Fault, script: Path, folder: Path) -> Outcome:
    report = folder / "report.json"
    command = [
        *DTDEBUG, "run", "--hang-after", str(HANG_AFTER), "--stop-on-hang", "--format", "json", "--output", str(report),
        "--", *TORCHRUN, str(fault.world), str(script),
    ]  # fmt: skip
    interrupted, began = False, time.monotonic()
    with _Job(command, folder) as job:
        while (status := job.poll()) is None and time.monotonic() - began < BOUND:
            time.sleep(0.1)
            if fault.family != "healthy" and _since(folder) > PATIENCE:
                interrupted = True
                job.interrupt()
                status = job.wait(60)
                break
    return Outcome(_fired(fault, folder), status, interrupted, "run", _read(report), after=_since(folder),
                   printed=_tail(folder))  # fmt: skip


def _plain(fault: Fault, script: Path, folder: Path) -> Outcome:
    began = time.monotonic()
    with _Job([*TORCHRUN, str(fault.world), str(script)], folder) as job:
        while (status := job.poll()) is None and time.monotonic() - began < BOUND and _since(folder) < LOOKED_AT:
            time.sleep(0.1)
        if status is None:
            asked, report, failed = "attach", *_asked(["attach", str(job.pid)], folder)
            time.sleep(SETTLES)
            status = job.poll()
        if status is not None:  # also where it was about to end: nobody could have seen its ranks
            asked, report, failed = "diagnose", *_asked(["diagnose", str(folder / "output.log")], folder)
    return Outcome(_fired(fault, folder), status, False, asked, report, failed, _since(folder), _tail(folder))


def _asked(question: list[str], folder: Path) -> tuple[dict[str, Any] | None, str]:
    """The report, and how it failed."""
    try:
        answer = subprocess.run(
            [*DTDEBUG, *question, "--format", "json"], check=False, capture_output=True, timeout=90, cwd=folder,
            env=os.environ | {"DTDEBUG_STATE": str(folder / "state")}, process_group=0,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "no answer in 90 s"
    (folder / "report.json").write_bytes(answer.stdout)
    failed = f"exit status {answer.returncode}: {answer.stderr.decode(errors='replace')[-600:]}"
    return _read(folder / "report.json"), failed


def _fired(fault: Fault, folder: Path) -> bool:
    return fault.fault == "clean" or any((folder / "records").glob("fired*"))


def _since(folder: Path) -> float:
    """Seconds since the fault."""
    try:
        return time.time() - float((folder / "records" / "fired").read_text())
    except (OSError, ValueError):
        return 0.0


def _read(path: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return report


def _tail(folder: Path) -> str:
    return (folder / "output.log").read_bytes()[-3000:].decode(errors="replace")


__all__ = ["PROGRAMS", "Outcome", "observe", "prepare", "trace"]
