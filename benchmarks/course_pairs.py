"""Measures the recorder's cost per step, within one job: blocks of steps with and without it alternate.

    python benchmarks/course_pairs.py [PAIRS [STEPS [SAMPLES [KIND]]]]

Two gloo ranks, DDP and FSDP2 of 3.2 M parameters, fingerprints only. Both blocks of a pair run next to the same other
load on a shared machine. CPU time of both ranks, the median of the pairs' ratios with a 95 % interval by
resampling. In the blocks without it a call still passes through the wrapper, a cost that is not included:
some 15 us for each collective. Needs torch.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from course import MODEL, interval

LIMIT = 600
PROGRAM = (
    MODEL
    + """
import sys, time, torch.distributed as dist
from dtdebug.experiments.collectives.inside import dispatcher_hook as road

kind, pairs, steps, samples = sys.argv[1], *map(int, sys.argv[2:])
dist.init_process_group("gloo")
model, optimizer = made(kind)
data = torch.randn(samples, 512)
listeners = list(road._listeners)
assert listeners

def block(recorded):
    road._listeners[:] = listeners if recorded else []
    begun = time.process_time()
    for _ in range(steps):
        loss = model(data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    spent = torch.tensor([time.process_time() - begun], dtype=torch.double)
    road._listeners[:] = []
    dist.all_reduce(spent)
    return spent.item()

block(True), block(False)
for pair in range(pairs):
    order = (True, False) if pair % 2 else (False, True)
    took = {recorded: block(recorded) for recorded in order}
    if dist.get_rank() == 0:
        print("PAIR", took[True], took[False], flush=True)
dist.destroy_process_group()
"""
)


def main() -> None:
    """Print a line for each kind."""
    given = sys.argv[1:4]
    numbers = [*given, *("30", "5", "256")[len(given) :]]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "train.py").write_text(PROGRAM, encoding="utf-8")
        for kind in sys.argv[4:] or ("ddp", "fsdp2"):
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
            options = ["--quiet", "--record", str(place / kind), "--data", "0"]
            done = subprocess.run(
                [sys.executable, "-m", "dtdebug", "run", *options, "--", *torchrun, "train.py", kind, *numbers],
                cwd=place, env={**os.environ, "DTDEBUG_STATE": str(place / "state"), "OMP_NUM_THREADS": "1"},
                check=True, capture_output=True, text=True, timeout=LIMIT,
            )  # fmt: skip
            pairs = [(float(a), float(b)) for a, b in re.findall(r"PAIR (\S+) (\S+)", done.stdout)]
            alone = sum(b for _, b in pairs) / len(pairs) / int(numbers[1]) / 2
            more = interval([a / b - 1 for a, b in pairs])
            print(f"{kind}: {more}, {len(pairs)} pairs, {alone * 1e3:.1f} ms a step", flush=True)


if __name__ == "__main__":
    main()
