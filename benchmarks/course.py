"""Measures the cost of following a run: CPU seconds of paired runs, recorded and watched; bytes; a rehearsed rank.

    python benchmarks/course.py [ROUNDS [STEPS]]

Runs real gloo jobs of two ranks, DDP and FSDP2, plainly and in each way, in a new random order in each round. A rank
reports the CPU seconds of its training loop; a ratio compares the sums of both ranks in one round. For comparison,
torch.profiler (Kineto) runs over the same loop. Needs torch.
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS, STEPS, LIMIT = 6, 100, 600
MODEL = """
import torch

def made(kind):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(12)])
    if kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)
"""
"""Model that is trained, also used by `course_pairs`."""
PROGRAM = (
    MODEL
    + """
import contextlib, sys, time, torch.distributed as dist

def main(kind, steps, profile):
    dist.init_process_group("gloo")
    model, optimizer = made(kind)
    torch.manual_seed(dist.get_rank())
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) if profile else contextlib.nullcontext():
        begun, wall = time.process_time(), time.perf_counter()
        for _ in range(steps):
            loss = model(torch.randn(256, 512)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("LOOP", time.process_time() - begun, time.perf_counter() - wall, flush=True)
    dist.destroy_process_group()

main(sys.argv[1], int(sys.argv[2]), "profile" in sys.argv)
"""
)
WAYS: dict[str, tuple[list[str], list[str]]] = {
    "plain": ([], []),
    "recorded, fingerprints": (["--record", "RUN", "--data", "0"], []),
    "recorded, 64 MiB of data": (["--record", "RUN"], []),
    "watched": (["--watch"], []),
    "torch.profiler": ([], ["profile"]),
}
"""Way -> options of `dtdebug run`, arguments of the program."""


def loop(place: Path, way: str, kind: str, steps: int) -> tuple[float, float, Path]:
    """Return CPU seconds of both ranks' loops, wall-clock seconds of the slower one, and the recording."""
    options, words = WAYS[way]
    folder = Path(tempfile.mkdtemp(dir=place)) / "run"
    env = {**os.environ, "DTDEBUG_STATE": str(place / "state"), "OMP_NUM_THREADS": "1"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    mine = [str(folder) if word == "RUN" else word for word in options]
    command = [sys.executable, "-m", "dtdebug", "run", "--quiet", *mine, "--", *torchrun, "train.py"]
    done = subprocess.run(
        [*command, kind, str(steps), *words],
        cwd=place, env=env, check=True, capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    told = re.findall(r"LOOP (\S+) (\S+)", done.stdout)
    return sum(float(cpu) for cpu, _ in told), max(float(wall) for _, wall in told), folder


def interval(ratios: list[float]) -> str:
    """Return the median with bounds that contain it in 95 of 100 draws of the rounds."""
    draw = random.Random(4242)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(4000))
    return f"{statistics.median(ratios):+.1%} ({medians[100]:+.1%} to {medians[-101]:+.1%})"


def main() -> None:
    """Print each figure."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else STEPS
    order = random.Random(16)
    with tempfile.TemporaryDirectory(prefix="dtdebug-course-") as name:
        place = Path(name)
        (place / "train.py").write_text(PROGRAM)
        for kind in ("ddp", "fsdp2"):
            ratios: dict[str, list[float]] = {way: [] for way in WAYS}
            plain = []
            for _ in range(rounds):
                ways = list(WAYS)
                order.shuffle(ways)
                spent = {way: loop(place, way, kind, steps) for way in ways}
                plain.append(spent["plain"])
                for way in ways:
                    ratios[way].append(spent[way][0] / spent["plain"][0] - 1)
            cpu, wall = (statistics.median(run[at] for run in plain) for at in (0, 1))
            print(f"{kind}: {steps} steps, plain {cpu:.1f} s of processor for both ranks, {wall:.1f} s by the clock")
            for way in list(WAYS)[1:]:
                print(f"  {way}: {interval(ratios[way])}, {rounds} pairs", flush=True)
                folder = spent[way][2]
                if (cost := folder / "rank-0.0.cost.json").exists():
                    told = json.loads(cost.read_text())
                    size = sum(path.stat().st_size for path in folder.glob("rank-0.*")) / 1024
                    print(f"    {told['collectives']} collectives, {size:.0f} KiB, own {told['seconds']:.2f} s a rank")
            print(f"  load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
        for kind in ("ddp", "fsdp2"):
            rehearsal = [sys.executable, "-m", "dtdebug", "rehearse", "--world", "1024", "--ranks", "0,1,1023"]
            said = subprocess.run(
                [*rehearsal, "--", "train.py", kind, "3"], cwd=place, check=False, capture_output=True, text=True
            )
            print(f"{kind}, 1,024 ranks rehearsed: {said.stdout}")


if __name__ == "__main__":
    main()
