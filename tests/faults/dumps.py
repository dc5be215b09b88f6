"""Runs a job without a launcher until each living rank has written the dump of its flight recorder."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from truth import FOLDER, Injection, environment, program, seen, stood

from dtdebug.recorded.flight_recorder import FlightError, analyse
from dtdebug_taxonomy.model.ranks import Verdict

SERVER = multiprocessing.get_context("forkserver")
"""Imports torch once for all ranks of all jobs."""
SERVER.set_forkserver_preload(["torch", "torch.distributed", "torch.utils.data"])
Rank = multiprocessing.context.ForkServerProcess
RUNNING = 0.3
"""Seconds that a job which does not stop goes on before it is asked."""
BOUND = 45.0
"""Seconds after which a job is given up."""
SETTLE = 2.5
"""Seconds after the fault in which a job that hangs is seen to do so."""


def dump(injection: Injection, folder: Path) -> dict[str, Any]:
    """Runs the job without a launcher until each living rank has written its dump; its truth."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "stacks").mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = environment() | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(injection.world),
        "LOCAL_WORLD_SIZE": str(injection.world),
    }
    arguments = [*program(injection, folder)[1:], "--flight"]
    ranks: list[Rank] = []
    ended: dict[int, tuple[int, float]] = {}
    began = time.time()
    try:
        for rank in range(injection.world):
            own = base | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            process = SERVER.Process(target=_be_rank, args=(arguments, own, folder / "output.log"))
            process.start()
            ranks.append(process)
        _follow(injection, folder, ranks, ended, began)
    finally:
        _end(ranks)
    truth = _truth(injection, folder, ended, began)
    (folder / "truth.json").write_text(json.dumps(truth, indent=1))
    return truth


def diagnose(folder: Path) -> Verdict:
    """The verdict on the dumps alone."""
    try:
        return analyse(folder, prefix="rank_").verdict
    except FlightError as error:
        return Verdict(kind="none", summary=str(error))


def _follow(
    injection: Injection,
    folder: Path,
    ranks: list[Rank],
    ended: dict[int, tuple[int, float]],
    began: float,
) -> None:
    """Until all that live have written, or cannot."""
    endless = injection.endless
    silent = _lockers(injection)
    settled = None
    while time.time() - began < BOUND:
        time.sleep(0.02)
        for rank, process in enumerate(ranks):
            if rank not in ended and process.exitcode is not None:
                ended[rank] = (process.exitcode, time.time())
        waited = [
            r for r in range(len(ranks)) if r not in ended and r not in silent and not (folder / f"rank_{r}").exists()
        ]
        if not waited:
            return
        dumped = any((folder / f"rank_{r}").exists() for r in range(len(ranks)))
        if settled is None and (dumped or ended or (endless and (folder / "fired").exists())):
            settled = time.time()
        if settled is not None and time.time() - settled > (RUNNING if endless else SETTLE):
            (folder / "dump").touch()


def _lockers(injection: Injection) -> set[int]:
    """Ranks whose thread can't write."""
    return {injection.rank} if injection.fault == "gil" else set()


def _be_rank(arguments: list[str], variables: dict[str, str], output: Path) -> None:
    """A rank in a process group of its own, so that its loader's workers end with it."""
    os.setpgid(0, 0)
    os.environ.update(variables)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["job.py", *arguments]
    sys.path.insert(0, str(FOLDER))
    import warnings

    import job

    warnings.simplefilter("ignore")
    job.main(arguments)


def _end(ranks: list[Rank]) -> None:
    for process in ranks:
        if process.exitcode is None:
            process.kill()
        if process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.join()


def _truth(injection: Injection, folder: Path, ended: dict[int, tuple[int, float]], began: float) -> dict[str, object]:
    shown = seen(folder)
    return injection.describe() | {
        "kinds": injection.kinds(shown),
        "now": {str(rank): place for rank, place in stood(folder).items() if rank in injection.culprits},
        "exits": {str(rank): code for rank, (code, _) in sorted(ended.items())},
        "ended_at": {str(rank): round(at - began, 3) for rank, (_, at) in sorted(ended.items())},
        "fired": (folder / "fired").exists(),
        "dumps": sorted(shown.dumps),
        "exchanging": sorted(shown.exchanging),
        "silent": sorted(set(range(injection.world)) - shown.dumps - set(ended) - _lockers(injection)),
    }
