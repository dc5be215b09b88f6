"""Drawn histories of one job's attempts, with the right decision known: logs that follow each other, one log with
torchrun's restarts, or a folder of runs.
"""

# ruff: noqa: E501 - lines of logs as they are printed

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

KINDS = ("passing", "host", "shard", "code", "start", "progress", "scheduler", "mixed", "healed", "other-last")
_NETWORK = (
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.21.5",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.0.0.1, 29500).",
    "OSError: [Errno 5] Input/output error: '/mnt/c4/meta.json'",
    "OSError: [Errno 116] Stale file handle: '/mnt/ckpt'",
)  # fmt: skip
_DEVICE = (
    "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered",
    "RuntimeError: CUDA error: unspecified launch failure",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
)
_DATA = (
    "ValueError: shard {n} is truncated",
    "zlib.error: Error -3 while decompressing data: incorrect header check",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 17: invalid start byte",
)
_CODE = (
    "AssertionError: hidden size 4096 is not divisible by 48 heads",
    "KeyError: 'attention_mask'",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4096x512 and 1024x4096)",
    "TypeError: unsupported operand type(s) for +: 'NoneType' and 'Tensor'",
    "ZeroDivisionError: division by zero",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.44 GiB is free.",
)  # fmt: skip


@dataclass
class History:
    """A drawn history and its truth."""

    kind: str
    action: str
    what: str
    layout: str
    attempts: int
    paths: list[str]


@dataclass
class _One:
    """One attempt to write."""

    error: str
    rank: int
    host: str
    begun: int
    step: int
    shard: int
    saved: int | None
    ended: str = "raises"


def draw(seed: int, number: int, folder: Path) -> History:
    """Write the history of this number; return what is true of it."""
    r = random.Random(seed * 1_000_003 + number)
    kind = KINDS[number % len(KINDS)]
    layout = r.choice(("logs", "one-log", "folder"))
    count = r.randrange(2, 6) if kind not in ("mixed", "other-last") else r.randrange(3, 6)
    hosts = [f"node-{n:02d}" for n in r.sample(range(10, 99), r.choice((4, 8, 16)))]
    ranks = len(hosts) * 8
    every = r.choice((50, 100, 250))
    rows, action, what, begun = list[_One](), "restart", "", 0
    bad, shard, code = r.choice(hosts), r.randrange(10_000, 99_999), r.choice(_CODE)
    data, device = r.choice(_DATA), r.choice(_DEVICE)
    place = r.randrange(30, 900)
    for n in range(count):
        last, step = n == count - 1, begun + r.randrange(20, 900)
        row = _One(
            r.choice(_NETWORK), r.randrange(ranks), r.choice(hosts), begun, step, r.randrange(10_000, 99_999), None
        )
        if kind == "host":
            row.error, row.host = device, bad
            row.rank = hosts.index(bad) * 8 + r.randrange(8)
            action, what = "exclude", bad
        elif kind == "shard":
            row.error, row.shard = data.format(n=shard), shard
            row.step = place if r.random() < 0.7 else place + r.randrange(1, 40)
            action, what = "skip", f"shard {shard}"
            row.begun = begun = 0
        elif kind == "code":
            row.error, row.step, row.begun, begun = code, place, 0, 0
            action = "stop"
        elif kind == "start":
            row.error, row.step, row.begun = code, 0, 0
            action = "stop"
        elif kind == "progress":
            row.error = _CODE[-1] if r.random() < 0.5 else row.error
        elif kind == "scheduler":
            row.ended = r.choice(("time", "preempted")) if last else row.ended
        elif kind == "mixed" and n < 2:
            row.error, row.host = r.choice(_DEVICE), hosts[n]
        elif kind == "healed" and last:
            row.ended, action = "well", "none"
        elif kind == "other-last":
            row.error, row.step, row.begun, begun = (
                (code, place, 0, 0) if not last else (r.choice(_NETWORK), place + 500, 0, 0)
            )
        if kind not in ("host", "start") and row.ended == "raises":
            row.rank = hosts.index(row.host) * 8 + row.rank % 8
        row.saved = row.step // every * every or None
        begun = row.saved or 0
        rows.append(row)
    paths = _write(rows, hosts, layout, folder, r, every)
    return History(kind, action, what, layout, count, paths)


def _write(rows: list[_One], hosts: list[str], layout: str, folder: Path, r: random.Random, every: int) -> list[str]:
    time = datetime(2026, 3, 1 + r.randrange(28), r.randrange(24), tzinfo=UTC).timestamp()
    texts = []
    for n, row in enumerate(rows):
        lines, time = _lines(row, hosts, time, r, every, last=n == len(rows) - 1, restarts=layout == "one-log")
        texts.append(lines)
        time += r.randrange(60, 900)
    folder.mkdir(parents=True, exist_ok=True)
    if layout == "one-log":
        path = folder / "train.log"
        path.write_text("\n".join(line for lines in texts for line in lines) + "\n")
        return [str(path)]
    for n, lines in enumerate(texts):
        path = folder / (f"slurm-{4100 + n * 7}.out" if layout == "logs" else f"run_{n}/train.log")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return [str(folder)]


def _day(time: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(time, UTC).strftime(form)


def _lines(
    row: _One, hosts: list[str], time: float, r: random.Random, every: int, *, last: bool, restarts: bool
) -> tuple[list[str], float]:
    lines = [f"{_day(time)},000 INFO starting on nodes {' '.join(hosts)}"]
    lines += [f"[rank{n * 8}]: {_day(time)},100 INFO host={host} ready" for n, host in enumerate(hosts)]
    lines += [f"{_day(time + 1)},000 INFO torch 2.6.0, commit 3f2a91c{r.randrange(10)}b"]
    shown = range(max(row.begun, row.step - 60) if row.step else 0, row.step + 1) if row.step else ()
    time += 20
    for step in shown:
        time += 3
        lines.append(f"[rank0]: {_day(time)},000 INFO step {step} loss {2 + r.random():.4f}")
        if row.saved and step == row.saved:
            lines.append(f"[rank0]: {_day(time)},500 INFO saved checkpoint to /ckpt/step_{step}")
    time += 2
    if row.ended == "well":
        return [*lines, f"[rank0]: {_day(time)},000 INFO Training completed."], time
    if row.ended in ("time", "preempted"):
        why = "DUE TO TIME LIMIT" if row.ended == "time" else "DUE TO PREEMPTION"
        return [
            *lines,
            f"slurmstepd: error: *** STEP 77.0 ON {hosts[0]} CANCELLED AT {_day(time, '%Y-%m-%dT%H:%M:%S')} {why} ***",
        ], time
    lead = f"[rank{row.rank}]: "
    lines += [
        f"{lead}{_day(time)},000 INFO host={row.host} reading shard {row.shard}",
        f"{lead}Traceback (most recent call last):",
        f'{lead}  File "/work/train.py", line 212, in <module>',
        f"{lead}    main()",
        f'{lead}  File "/work/step.py", line 88, in run',
        f"{lead}    out = self.forward(batch)",
        f"{lead}{row.error}",
    ]
    if restarts and not last:
        lines += [
            f"W{_day(time + 5, '%m%d %H:%M:%S')}.000000 4777 torch/distributed/elastic/agent/server/api.py:900] [default] Worker group FAILED. 3/3 attempts left; will restart worker group",
            f"I{_day(time + 6, '%m%d %H:%M:%S')}.000000 4777 torch/distributed/elastic/agent/server/api.py:699] [default] Restarting worker group",
        ]
    return lines, time + 6
