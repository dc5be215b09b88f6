"""What `dtdebug run --watch` costs: paired runs of one DDP training on two gloo ranks, without and with it.

    python benchmarks/watch.py [PAIRS]

Each rank prints the seconds of its training loop alone; the order within a pair alternates. The figure is the median of
the pairs' ratios, with the smallest and the largest.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS, WIDTH, LIMIT = 60, 768, 300
PROGRAM = f"""
import time, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
layers = [m for _ in range(6) for m in (nn.Linear({WIDTH}, {WIDTH}), nn.ReLU())]
model = DistributedDataParallel(nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
torch.manual_seed(dist.get_rank())
begun = time.perf_counter()
for _ in range({STEPS}):
    optimizer.zero_grad()
    model(torch.randn(64, {WIDTH})).pow(2).mean().backward()
    optimizer.step()
print("LOOP", time.perf_counter() - begun, sum(p.numel() for p in model.parameters()))
dist.destroy_process_group()
"""


def seconds(program: Path, *, watch: bool) -> tuple[float, float]:
    """The loop of the slower rank, in seconds, and the size of the notes in KB."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
            str(program),
        ]
        command = [sys.executable, "-m", "dtdebug", "run", "--folder", str(run), "--quiet"]
        done = subprocess.run(
            [*command, *(["--watch"] if watch else []), "--", *torchrun],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
        sizes = [path.stat().st_size for path in (run / "watch").glob("*.jsonl")] if watch else [0]
    return max(float(found) for found in re.findall(r"LOOP (\S+)", done.stdout)), max(sizes) / 1e3


def main() -> None:
    """Prints the figures."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    ratios, size = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "train.py"
        program.write_text(PROGRAM)
        for n in range(pairs):
            order = (False, True) if n % 2 else (True, False)
            found = {watch: seconds(program, watch=watch) for watch in order}
            ratios.append(found[True][0] / found[False][0] - 1)
            size = found[True][1]
            print(f"pair {n + 1}: {found[False][0]:.2f} s without, {found[True][0]:.2f} s with: {ratios[-1]:+.1%}")
    print(
        f"median {statistics.median(ratios):+.1%} ({min(ratios):+.1%} to {max(ratios):+.1%}) of {pairs} pairs, "
        f"{STEPS} steps, {size:.0f} KB a rank; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
