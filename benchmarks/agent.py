"""Measures the agent's cost for a rank: one reading, its share of the time, start-up, a collective with and without it.

    python benchmarks/agent.py

Runs real gloo jobs of two ranks; needs torch. Prints each figure next to its target.
"""

from __future__ import annotations

import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from dtdebug.live.agent import arm
from dtdebug.storage.run_folder import RunFolder

REPEATS = 5
"""Pairs of jobs, with and without the agent, one after the other."""
STARTS = 60
JOB = """
import statistics, sys, time
import torch
import torch.distributed as dist

def spent(watcher):
    # processor seconds of the agent's thread so far
    return time.clock_gettime(time.pthread_getcpuclockid(watcher._thread.ident)) if watcher else 0.0

def main():
    dist.init_process_group("gloo")
    dist.new_group([0, 1], group_desc="tp")
    tensor = torch.ones(1024)
    for _ in range(500):
        dist.all_reduce(tensor)
    time.sleep(1.5)  # the agent has found out that this is a rank
    watcher = getattr(sys.modules.get("dtdebug.live.agent.arm"), "_watcher", None)
    rounds = []
    before, start = spent(watcher), time.perf_counter()
    end = start + 8.0
    while True:
        begin = time.perf_counter()
        for _ in range(200):
            dist.all_reduce(tensor)
        rounds.append((time.perf_counter() - begin) / 200)
        more = torch.tensor([float(begin < end)])
        dist.all_reduce(more, op=dist.ReduceOp.MIN)
        if not more.item():
            break
    share = (spent(watcher) - before) / (time.perf_counter() - start)
    if dist.get_rank() == 0:
        print("all_reduce", statistics.median(rounds))
        if watcher:
            print("share", share)
            measure(watcher)
    dist.barrier()
    dist.destroy_process_group()

def measure(watcher):
    from dtdebug.live.agent import own_state, recorder_status as recorder
    state = own_state.observe(False)
    parts = {
        "light": lambda: own_state.observe(False, state),
        "write": lambda: watcher.folder.save_record(state),
        "dump": recorder.dump,
        "full": lambda: own_state.observe(True),
    }
    for name, part in parts.items():
        times = []
        for _ in range(20 if name in ("dump", "full") else 300):
            begin = time.thread_time()
            part()
            times.append(time.thread_time() - begin)
        print(name, times[0] if name == "dump" else statistics.median(times))

main()
"""


def run(script: str, variables: dict[str, str], world: int) -> dict[str, float]:
    """Run a job and return the figures that its ranks printed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    plain = {name: value for name, value in os.environ.items() if not name.startswith("DTDEBUG")}
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            env={**plain, **common, **variables, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    lines = [line for rank in ranks for line in rank.communicate(timeout=300)[0].splitlines()]
    return {name: float(value) for name, _, value in (line.partition(" ") for line in lines)}


def started(variables: dict[str, str]) -> float:
    """Return the CPU seconds in which a Python that is not a rank starts and ends."""
    plain = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import json"], env={**plain, **variables}, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(what: str, figure: str, target: str = "") -> None:
    """Print one line of the table."""
    print(f"{what:<58}{figure:>16}   {target}", flush=True)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as parent:
        armed = arm.arming_variables(RunFolder.make(Path(parent)))
        pairs = [(run(JOB, {}, 2), run(JOB, armed, 2)) for _ in range(REPEATS)]
        without, with_agent = ([job["all_reduce"] for job in jobs] for jobs in zip(*pairs, strict=True))
        figures = {name: statistics.median(job[name] for _, job in pairs) for name in pairs[0][1]}
        row("what (median, rank 0 of 2, gloo)", "figure", "target")
        row("one reading (groups, stack, versions, environment)", f"{figures['light'] * 1e6:.0f} us")
        row("writing the record", f"{figures['write'] * 1e6:.0f} us")
        one = figures["light"] + figures["write"]
        row("share of a rank's time, at one of both a second", f"{one * 100:.3f} %", "0.1 %")
        row("the same, measured: processor time of the agent's thread", f"{figures['share'] * 100:.3f} %", "0.1 %")
        row("a full reading with 2,000 entries, on demand", f"{figures['full'] * 1e3:.2f} ms")
        row("first dump with stacks, 2,000 entries, on demand", f"{figures['dump'] * 1e3:.0f} ms")
        row("all_reduce of 1024 floats without the agent", f"{statistics.median(without) * 1e6:.1f} us")
        row("all_reduce of 1024 floats with it", f"{statistics.median(with_agent) * 1e6:.1f} us")
        spread = (max(without) - min(without)) / statistics.median(without)
        row("spread of the jobs without it", f"{spread * 100:.0f} %")
        added = statistics.median(started(armed) - started({}) for _ in range(STARTS))
        row("start of a Python that is no rank, added", f"{added * 1e3:.2f} ms", "2 ms")


if __name__ == "__main__":
    main()
