"""Runs healthy jobs that are slow for a while, and counts what `dtdebug run` says: python benchmarks/first_word.py [N].

A first word ("slow, or hanging: ...") is right if it names the rank that was slow; a verdict on any of them is wrong.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROGRAM = """
import os, subprocess, sys, time
import torch, torch.distributed as dist

KIND, SLOW, SECONDS, STEP = os.environ["KIND"], int(os.environ["SLOW"]), float(os.environ["SECONDS"]), 3

def build_kernels():
    subprocess.run([sys.executable, "-c", f"import time; time.sleep({SECONDS})"], check=True)

def save_checkpoint(model):
    for part in range(10):
        torch.save(model.state_dict(), os.devnull)
        time.sleep(SECONDS / 10)

def evaluate(model):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        model(torch.ones(8, 4))

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, index):
        if KIND == "data" and index == STEP * 4 and dist.is_initialized() and dist.get_rank() == SLOW:
            time.sleep(SECONDS)
        return torch.ones(4)

def main():
    dist.init_process_group("gloo")
    rank, model = dist.get_rank(), torch.nn.Linear(4, 4)
    if KIND == "first" and rank == SLOW:
        evaluate(model)
    for step, batch in enumerate(torch.utils.data.DataLoader(Data(), batch_size=4)):
        if step == STEP and rank == SLOW and KIND in WORK:
            WORK[KIND](model)
        dist.all_reduce(model(batch).sum().detach())
        print("step", step, flush=True)
    dist.destroy_process_group()

WORK = {"compilation": lambda model: build_kernels(), "checkpoint": save_checkpoint, "evaluation": evaluate}
main()
"""
KINDS = ("compilation", "checkpoint", "evaluation", "first", "data")
_RANKS = 3
_SAID = re.compile(r"^dtdebug: (?P<text>.*)$", re.MULTILINE)


def run_job(kind: str, slow: int, seconds: float) -> tuple[int, list[str]]:
    """Return the exit status of a job, and the lines that dtdebug printed."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "train.py"
        program.write_text(PROGRAM)
        command = [sys.executable, "-m", "dtdebug", "run", "--", "torchrun", "--standalone"]
        command += [f"--nproc-per-node={_RANKS}", str(program)]
        given = {"KIND": kind, "SLOW": str(slow), "SECONDS": f"{seconds:g}", "OMP_NUM_THREADS": "1"}
        given |= {"DTDEBUG_STATE": str(Path(folder) / "state")}
        done = subprocess.run(
            command, env={**os.environ, **given}, capture_output=True, text=True, timeout=600, check=False
        )
    return done.returncode, [m["text"] for m in _SAID.finditer(done.stderr)]


def main() -> None:
    """Print one line for each job, and the counts."""
    number, draw, counts = int(sys.argv[1]) if len(sys.argv) > 1 else 50, random.Random(42), Counter[str]()
    for job in range(number):
        kind, slow, seconds = KINDS[job % len(KINDS)], draw.randrange(_RANKS), draw.uniform(18, 40)
        begin = time.perf_counter()
        status, said = run_job(kind, slow, seconds)
        first = [line for line in said if line.startswith("slow, or hanging: ")]
        others = [line for line in said if line not in first and "moves again" not in line]
        counts["jobs"] += 1
        counts["failed"] += status != 0
        counts["first words"] += bool(first)
        counts["first words that name another rank"] += any(f"rank {slow} has not" not in line for line in first)
        counts["verdicts"] += bool(others)
        print(
            f"{kind:12} rank {slow} slow for {seconds:4.0f} s ({time.perf_counter() - begin:4.0f} s): {said}",
            flush=True,
        )
    print(dict(counts))


if __name__ == "__main__":
    main()
