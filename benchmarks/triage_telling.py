"""Measures the time of `dtdebug triage` on logs in which most lines are telling, by kind.

.venv/bin/python benchmarks/triage_telling.py [--ranks 64] [--megabytes 10]
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from pathlib import Path

from triage import TRIAGE, timed

_RAISES = (
    "Traceback (most recent call last):",
    '  File "/w/train/loader.py", line 211, in __next__',
    "    sample = self._fetch(self._index[self._pos])",
    '  File "/w/train/fetch.py", line 58, in _fetch',
    "    with open(path, 'rb') as file:",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-{d}.tar'",
)
_TIME = "2026-11-26 10:{m:02d}:{s:02d}"
_TORCH = "[rank{r}]:[E1126 10:{m:02d}:{s:02d}.{d} ProcessGroupNCCL.cpp:616] [Rank {r}] "
KINDS = {
    "watchdogs": (
        _TORCH + "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn={d}, "
        "NumelOut={d}, Timeout(ms)=600000) ran for 600{g} milliseconds before timing out.",
    ),
    "tracebacks that are survived": (
        "{r:>3}: " + _TIME + " ERROR data: attempt {g} failed",
        *(f"{{r:>3}}: {line}" for line in _RAISES),
        "{r:>3}: " + _TIME + " INFO step {n} loss 0.{d}",
    ),
    "the same through Ray": (
        *(f"(RayTrainWorker pid=90{{r}}, ip=10.0.0.{{h}}) {line}" for line in _RAISES),
        "(RayTrainWorker pid=90{r}, ip=10.0.0.{h}) loss: 0.{d}, step: {n}",
    ),
    "NCCL's INFO and WARN": (
        "gpu-{h}:40{r}:50{r} [{g}] NCCL INFO Channel 0{g}/0 : {r}[{g}] -> {r}[{g}] [send] via NET/IB/{g}/GDRDMA",
        "gpu-{h}:40{r}:50{r} [{g}] NCCL INFO AllReduce: opCount {n} sendbuff 0x7f{d} count {d} comm 0x55{d}",
        "gpu-{h}:40{r}:50{r} [{g}] NCCL WARN NET/IB : Got completion from peer 10.0.{h}.1<4{g}> with status=12",
    ),
    "warnings each step": (
        "[rank{r}]:/opt/torch/autograd/graph.py:825: UserWarning: c10d::allreduce_: no autograd kernel is registered",
        "[rank{r}]:" + _TIME + " WARNING Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to {d}.0",
        "[rank{r}]:" + _TIME + " INFO step {n} loss 0.{d}",
    ),
    "records in JSON": (
        '{{"time": "' + _TIME + '", "rank": {r}, "message": "NCCL WARN Call to recv from 10.0.{h}.1<{d}> failed"}}',
        '{{"time": "' + _TIME + '", "rank": {r}, "message": "step {n} loss 0.{d}"}}',
    ),
}


def made(path: Path, forms: tuple[str, ...], ranks: int, size: float) -> int:
    """Write a log of this kind; return its size in bytes."""
    r, n = random.Random(5), 0
    with path.open("w") as out:
        while out.tell() < size:
            for rank in range(ranks):
                where = {"r": rank, "h": rank // 8, "g": rank % 8, "n": n, "m": n // 60 % 60, "s": n % 60}
                out.writelines(form.format(d=r.randrange(10**6), **where) + "\n" for form in forms)
            n += 1
    return path.stat().st_size


def main() -> None:
    """Make and read one log of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--megabytes", type=float, default=10.0)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; {options.ranks} ranks in one log of {options.megabytes} MB")
    with tempfile.TemporaryDirectory(prefix="dtdebug-") as folder:
        for kind, forms in KINDS.items():
            log = Path(folder) / "job.log"
            size = made(log, forms, options.ranks, options.megabytes * 1e6)
            timed(kind, size, [*TRIAGE, str(log)])


if __name__ == "__main__":
    main()
