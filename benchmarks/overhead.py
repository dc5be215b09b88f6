"""What `dtdebug run` costs a job's steps, beside the same job alone, in many short pairs.

    python benchmarks/overhead.py [JOBS] [PAIRS]

Data-parallel training of a small network over two gloo ranks on CPU; needs torch. Both jobs are started together and
then take turns: one makes a block of steps while the other waits, and which goes first alternates. So a pair of blocks
meets the same neighbours on a machine that others use too. Processor time of the ranks (their agents included) is
steadier than the clock. The median of the pairs' ratios, with a 95 % interval by resampling them; and what the process
of dtdebug itself took meanwhile, as a share of one processor.
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

RANKS, STEPS, LIMIT, RESAMPLES = 2, 100, 300, 4_000
JOB = """
import os, sys, time, torch
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
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(int(sys.argv[3])):
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()
    wall, spent = time.perf_counter() - wall, torch.tensor([time.process_time() - cpu], dtype=torch.double)
    dist.all_reduce(spent)
    if first:
        print(spent.item(), wall, time.time(), watchers(), file=answers, flush=True)
dist.destroy_process_group()
"""


class Block(NamedTuple):
    """Seconds of all ranks' processors and of the clock; then the time, and the seconds that dtdebug's process took."""

    processor: float
    clock: float
    now: float
    above: float


class Job(NamedTuple):
    """A job that waits for its turn."""

    orders: IO[str]
    answers: IO[str]

    def block(self) -> Block:
        """Lets it make a block of steps."""
        self.orders.write("go\n")
        self.orders.flush()
        answer = self.answers.readline().split()
        if len(answer) != len(Block._fields):
            sys.exit("the job has ended")
        return Block(*map(float, answer))


@contextmanager
def job(prefix: Sequence[str], folder: Path) -> Iterator[Job]:
    """A job, until it has ended."""
    folder.mkdir()
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    orders, answers = folder / "orders", folder / "answers"
    os.mkfifo(orders)
    os.mkfifo(answers)
    command = [*prefix, sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
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


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, and between what it lies in 95 of 100 resamples."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return statistics.median(values), medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def measured(pairs: int, folder: Path) -> tuple[list[tuple[Block, Block]], float]:
    """The blocks alone and with dtdebug, and the share of a processor of its own process."""
    with ExitStack() as stack:
        alone = stack.enter_context(job([], folder / "alone"))
        ours = stack.enter_context(job([sys.executable, "-m", "dtdebug", "run", "--"], folder / "ours"))
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
    """Prints the table."""
    jobs, pairs = (int(word) for word in (*sys.argv[1:3], *("3", "100")[len(sys.argv[1:3]) :]))
    found: list[tuple[Block, Block]] = []
    for n in range(jobs):
        with tempfile.TemporaryDirectory() as name:
            blocks, above = measured(pairs, Path(name))
        found += blocks
        middle, low, high = interval([b.processor / a.processor - 1 for a, b in blocks])
        print(f"job {n + 1}: {middle:+.2%} ({low:+.2%} to {high:+.2%}); dtdebug {above:.2%} of a processor", flush=True)
    for what, at in (("processor time of the ranks", 0), ("clock", 1)):
        middle, low, high = interval([b[at] / a[at] - 1 for a, b in found])
        alone = statistics.median(a[at] for a, _ in found) / STEPS
        print(f"{what:<30}{alone * 1e3:8.3f} ms a step alone{middle:+9.2%}  ({low:+.2%} to {high:+.2%})")


if __name__ == "__main__":
    main()
