"""Measures how long the states of all living ranks take: `python benchmarks/state.py [RANKS] [--torch]`.

Without `--torch` the ranks are armed Python processes that sleep; with it they are a gloo job whose last rank is late,
so that all others wait in an all_reduce.
"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dtdebug.live.agent import arm
from dtdebug.live.probe.ask_all_ranks import gather
from dtdebug.storage.run_folder import RunFolder

SLEEPS = "import time; time.sleep(600)"
JOB = """
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(4)
dist.all_reduce(value)
if dist.get_rank() == dist.get_world_size() - 1:
    time.sleep(600)
dist.all_reduce(value)
"""
ROUNDS = 10
START = 300.0
"""Seconds that the ranks have to start."""


def main(ranks: int, script: str) -> None:
    """Start the ranks, ask them, print, end them."""
    with tempfile.TemporaryDirectory() as parent:
        folder = RunFolder.make(Path(parent))
        with socket.create_server(("127.0.0.1", 0)) as free:
            place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
        common = os.environ | arm.arming_variables(folder) | place | {"WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", script],
                env=common | {"RANK": str(rank)},
                start_new_session=True,
                stderr=subprocess.DEVNULL,
            )
            for rank in range(ranks)
        ]
        try:
            wait(folder, ranks, in_group=script is JOB)
            measure(folder, ranks)
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait(folder: RunFolder, ranks: int, *, in_group: bool) -> None:
    """Wait until all have a record and an endpoint."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        ready = [r for r in folder.records() if r.facts.get("endpoint") and (r.initialized or not in_group)]
        if len(ready) == ranks:
            time.sleep(2.0)
            return
        time.sleep(0.1)
    sys.exit(f"not all of {ranks} ranks were ready after {START:g} s")


def measure(folder: RunFolder, ranks: int) -> None:
    """Print how long asking all of them takes."""
    seconds, by_endpoint = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        states = gather(folder, timeout=10.0, dumps=False)
        seconds.append(time.perf_counter() - began)
        by_endpoint.append(sum(state.roads.get("endpoint") == "ok" for state in states))
        time.sleep(0.2)
    median, worst = statistics.median(seconds), max(seconds)
    answered = f"{min(by_endpoint)}-{max(by_endpoint)} by endpoint"
    print(f"state of {ranks} ranks: median {median:.3f} s, worst {worst:.3f} s of {ROUNDS} ({answered})")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    main(numbers[0] if numbers else 24, JOB if "--torch" in sys.argv else SLEEPS)
