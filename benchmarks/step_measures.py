"""Measures what `dtdebug run --parity` and `--nan` cost a step, by turns within one job.

    python benchmarks/step_measures.py [RANKS] [WIDTH]

Data-parallel training over gloo ranks on CPU; needs torch. Of `--parity`, steps that are compared take turns with steps
that are not; of `--nan`, blocks of steps with the checks take turns with blocks without them. Printed are the medians
of the first rank, and the ratio.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 900
PROGRAM = """
import os, statistics, sys, time, torch
import torch.distributed as dist
from pathlib import Path
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from dtdebug.experiments.nonfinite.inside.install import NonFinite
from dtdebug.experiments.parity.inside.install import Parity
from dtdebug.experiments.repeat.after_import import after_import

folder, width, steps = Path(sys.argv[1]), int(sys.argv[2]), 40
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]))
torch.manual_seed(0)


def train(turn):
    model = DistributedDataParallel(nn.Sequential(*[nn.Linear(width, width) for _ in range(6)]))
    optimizer = torch.optim.AdamW(model.parameters())
    times = {True: [], False: []}
    for step in range(1, steps + 1):
        dist.barrier()
        begun = time.perf_counter()
        on = turn(step)
        optimizer.zero_grad()
        model(torch.randn(32, width)).pow(2).mean().backward()
        optimizer.step()
        dist.barrier()
        times[on].append(time.perf_counter() - begun)
    return statistics.median(times[True][1:]), statistics.median(times[False][1:])


def nan(step):
    looks._done = step // 5 % 2 == 0
    (looks._calls.stop if looks._done else looks._calls.start)()
    return not looks._done


looks = NonFinite(folder / "nan")
after_import(looks.patches(), looks.patch)
found = {"--nan, a step": train(nan)}
looks._end()
measured = Parity(folder / "parity", tuple(range(2, steps, 4)))
after_import(measured.patches(), measured.patch)
found["--parity, a compared step"] = train(lambda step: step in measured._steps)
if dist.get_rank() == 0:
    for name, (on, off) in found.items():
        print(f"{name}: {on * 1e3:.1f} ms, without {off * 1e3:.1f} ms, ratio {on / off:.2f}")
dist.destroy_process_group()
"""


def main(ranks: int = 2, width: int = 512) -> None:
    """Print the cost on so many ranks, with six layers of that width."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        env = os.environ | {"WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(program), folder, str(width)]
        jobs = [subprocess.Popen(command, env=env | {"RANK": str(rank)}) for rank in range(ranks)]
        for one in jobs:
            one.wait(LIMIT)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
