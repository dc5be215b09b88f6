"""Runs a job under `dtdebug run` and torchrun, and reads the verdict."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
from truth import Injection, environment, program

from dtdebug_taxonomy.model.ranks import Verdict

RUNNING = 4.0
"""Seconds that a job which does not stop goes on before it is interrupted."""
LIMIT = 25.0
"""Seconds after which the groups give up: what may only be slow is not ended before."""
BOUND = 90.0
"""Seconds after which a job is given up."""


def command(injection: Injection, folder: Path) -> list[str]:
    """The whole command line as a user types it, with the interpreter of this process."""
    return [
        sys.executable, "-m", "dtdebug", "run", "--hang-after", "3", "--stop-on-hang", "--format", "json",
        "--output", str(folder / "report.json"), "--",
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(injection.world),
        *program(injection, folder), "--timeout", f"{LIMIT:g}",
    ]  # fmt: skip


def diagnose(injection: Injection, folder: Path) -> tuple[Verdict, bool]:
    """The verdict on a real job, and whether the fault struck in it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "stacks").mkdir(parents=True)
    (folder / "truth.json").write_text(json.dumps(injection.describe(), indent=1))
    variables = environment() | {"DTDEBUG_STATE": str(folder / "state")}
    with (folder / "output.log").open("wb") as output:
        job = subprocess.Popen(
            command(injection, folder),
            env=variables,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            _follow(injection, job, folder / "fired")
        finally:
            _end(job)
    return _verdict(folder / "report.json"), (folder / "fired").exists()


def _follow(injection: Injection, job: subprocess.Popen[bytes], fired: Path) -> None:
    """Until it has ended; a job that would go on for ever is interrupted as from a terminal."""
    until = time.monotonic() + BOUND
    while job.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
        if injection.endless and fired.exists():
            time.sleep(RUNNING)
            os.killpg(job.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.wait(BOUND / 2)
            return


def _end(job: subprocess.Popen[bytes]) -> None:
    """Ends what is left of it: the launcher gives each rank a session of its own."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(job.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def _verdict(path: Path) -> Verdict:
    try:
        report = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        return Verdict(kind="none", summary=f"no report: {error}")
    return msgspec.convert(report["verdict"], Verdict)
