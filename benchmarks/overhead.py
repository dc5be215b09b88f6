"""Measures the cost of `dtdebug run` for a job's steps, next to the same job alone, in many short pairs.

    python benchmarks/overhead.py [JOBS] [PAIRS] [RANKS ...]

Data-parallel training of a small network over gloo ranks on CPU, two by default; needs torch. Both jobs are
started together and then take turns: one makes a block of steps while the other waits, and which goes first alternates.
So a pair of blocks runs next to the same other load on a shared machine. CPU time of the ranks (their
agents included) is steadier than the clock. The machine also affects two jobs differently, so a pair of jobs
counts once: the median of its blocks' ratios, then the median over the jobs, with a 95 % interval by resampling jobs
and, within them, blocks; and the CPU time of dtdebug's own process, as a share of one processor.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

STEPS, LIMIT, RESAMPLES = 20, 900, 4_000
JOB = """
import os, sys, threading, time, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def watchers():
    # processor seconds of the processes above the launcher: dtdebug's
    pid, total = os.getppid(), 0.0
    while pid > 1:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            ours = b"dtdebug" in f.read().split(b"torch.distributed.run")[0]
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if ours else 0
        pid = int(fields[1])
    return total

def agents():
    # processor seconds of our threads in this rank
    ours = (thread.ident for thread in threading.enumerate() if thread.name.startswith("dtdebug-"))
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in ours)

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Sequential(
    torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data, turn = torch.randn(64, 256), torch.ones(1)
if first := dist.get_rank() == 0:
    answers, orders = open(sys.argv[2], "w"), open(sys.argv[1])
while True:
    turn[0] = bool(orders.readline()) if first else 0
    dist.broadcast(turn, 0)
    if not turn.item():
        break
    agent, cpu, wall = agents(), time.process_time(), time.perf_counter()
    for _ in range(int(sys.argv[3])):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    spent = torch.tensor([cpu, agents() - agent], dtype=torch.double)
    dist.all_reduce(spent)
    if first:
        print(*spent.tolist(), wall, time.time(), watchers(), file=answers, flush=True)
dist.destroy_process_group()
"""


class Block(NamedTuple):
    """CPU seconds of the ranks and of our threads there, wall-clock seconds, time, CPU seconds of our own process."""

    processor: float
    agents: float
    clock: float
    now: float
    above: float


class Job(NamedTuple):
    """Job that waits for its turn."""

    orders: IO[str]
    answers: IO[str]

    def block(self) -> Block:
        """Let it run a block of steps."""
        self.orders.write("go\n")
        self.orders.flush()
        answer = self.answers.readline().split()
        if len(answer) != len(Block._fields):
            sys.exit("the job has ended")
        return Block(*map(float, answer))


@contextmanager
def job(prefix: Sequence[str], folder: Path, ranks: int) -> Iterator[Job]:
    """Yield a job, until it has ended."""
    folder.mkdir()
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    orders, answers = folder / "orders", folder / "answers"
    os.mkfifo(orders)
    os.mkfifo(answers)
    command = [*prefix, sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    with subprocess.Popen(
        [*command, str(folder / "job.py"), str(orders), str(answers), str(STEPS)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DTDEBUG_STATE": str(folder / "state"), "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    ) as process:
        with answers.open(encoding="ascii") as told, orders.open("w", encoding="ascii") as telling:
            yield Job(telling, told)
        if process.wait(LIMIT):
            sys.exit(f"the job failed with {process.returncode}")


def interval(jobs: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return the median over the jobs of their medians, and the bounds of 95 of 100 resamples."""
    rng = random.Random(1)

    def middle(chosen: Sequence[Sequence[float]]) -> float:
        return statistics.median(map(statistics.median, chosen))

    drawn = ([rng.choices(job, k=len(job)) for job in rng.choices(jobs, k=len(jobs))] for _ in range(RESAMPLES))
    middles = sorted(map(middle, drawn))
    return middle(jobs), middles[RESAMPLES // 40], middles[-RESAMPLES // 40]


def measured(pairs: int, ranks: int, folder: Path) -> tuple[list[tuple[Block, Block]], float]:
    """Return the blocks alone and with dtdebug, and the share of a processor of dtdebug's own process."""
    with ExitStack() as stack:
        alone = stack.enter_context(job([], folder / "alone", ranks))
        ours = stack.enter_context(job([sys.executable, "-m", "dtdebug", "run", "--"], folder / "ours", ranks))
        alone.block(), ours.block()
        begun = ours.block()
        found = []
        for n in range(pairs):
            one, two = (alone, ours) if n % 2 else (ours, alone)
            both = {one: one.block(), two: two.block()}
            found.append((both[alone], both[ours]))
        end = ours.block()
    return found, (end.above - begun.above) / (end.now - begun.now)


def main() -> None:
    """Print a table for each number of ranks."""
    jobs, pairs, *numbers = (int(word) for word in (*sys.argv[1:], *("6", "40", "2")[len(sys.argv) - 1 :]))
    for ranks in numbers:
        found: list[list[tuple[Block, Block]]] = []
        above = []
        for _ in range(jobs):
            with tempfile.TemporaryDirectory() as name:
                blocks, share = measured(pairs, ranks, Path(name))
            found.append(blocks)
            above.append(share)
        load = os.getloadavg()[0]
        print(f"{ranks} ranks, {jobs} jobs of {pairs} pairs of {STEPS} steps, load {load:.1f} at the end")
        for what, at in (("processor time of the ranks", 0), ("clock", 2)):
            middle, low, high = interval([[b[at] / a[at] - 1 for a, b in blocks] for blocks in found])
            alone = statistics.median(a[at] for blocks in found for a, _ in blocks) / STEPS
            print(f"  {what:<30}{alone * 1e3:8.3f} ms a step alone{middle:+9.2%}  ({low:+.2%} to {high:+.2%})")
        shares = [sum(b.agents for _, b in blocks) / sum(b.processor for _, b in blocks) for blocks in found]
        print(f"  of it dtdebug's threads: {statistics.median(shares):.2%} ({min(shares):.2%} to {max(shares):.2%})")
        print(f"  dtdebug's own process: {statistics.median(above):.2%} of a processor", flush=True)


if __name__ == "__main__":
    main()
