"""Generated job: its lines with ranks and times, in the style of a logger."""

# ruff: noqa: E501, ISC004, PLR0917 - lines of logs as they are printed; each fault has one signature

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

PER_NODE = 8


HEALTHY = ("fine", "fine-one-quiet", "fine-zero-only", "fine-retried", "fine-no-goodbye")


ENDED = ("time-limit", "preempted", "evicted")


FAULTS = (
    "raises", "raises-sigterm", "raises-gloo", "cuda-oom", "assert", "hang", "killed", "segfault", "bus", "ecc",
    "restart", *ENDED, *HEALTHY,
)  # fmt: skip


class Say(NamedTuple):
    """Line of one rank."""

    time: float
    text: str
    err: bool = False
    bare: bool = False
    """True for a line that bypasses the logger: a traceback, a library's own line."""


@dataclass
class Job:
    """Properties of a job."""

    ranks: int
    layout: str
    manner: str
    who: str
    fault: str
    start: float
    hosts: list[str]
    culprit: int | None = None
    marker: str = ""
    """Words in the line of the culprit's failure."""
    exception: str = ""
    silent: set[int] = field(default_factory=set)
    followed: set[int] = field(default_factory=set)
    code: str = ""
    joinable: bool = False
    says: list[list[Say]] = field(default_factory=list)
    agents: dict[str, list[Say]] = field(default_factory=dict)
    """Host -> output of its launcher."""
    kernel: dict[str, list[str]] = field(default_factory=dict)
    before: list[list[Say]] = field(default_factory=list)
    """Output of the ranks in an earlier attempt."""

    def host(self, rank: int) -> str:
        """Return the host of a rank."""
        return self.hosts[rank // PER_NODE]


def day(time: float, form: str) -> str:
    """Format a time; `%f` with three digits if the format has `%3`."""
    at = datetime.fromtimestamp(time, UTC)
    return at.strftime(form.replace("%3", f"{at.microsecond // 1000:03d}"))


Manner = Callable[[float, int, random.Random], str]


def _loss(r: random.Random) -> float:
    return 2 + r.random()


MANNERS: dict[str, Manner] = {
    "loguru": lambda t, s, r: (
        f"{day(t, '%Y-%m-%d %H:%M:%S.%3')} | INFO     | __main__:train:{r.choice((88, 91))} - step {s} loss {_loss(r):.4f}"
    ),
    "hydra": lambda t, s, r: (
        f"[{day(t, '%Y-%m-%d %H:%M:%S,%3')}][trainer.loop][INFO] - Step {s}: loss={_loss(r):.3f} gnorm={r.random():.2f}"
    ),
    "accelerate": lambda t, s, r: (
        f"{day(t, '%m/%d/%Y %H:%M:%S')} - INFO - __main__ - Steps: {s}, train_loss: {_loss(r):.4f}"
    ),
    "absl": lambda t, s, r: (
        f"I{day(t, '%m%d %H:%M:%S.%f')} 14{r.randrange(10**10):010d} train.py:131] [{s}] loss={_loss(r):.5f}"
    ),
    "titan": lambda t, s, r: (
        f"[titan] {day(t, '%Y-%m-%d %H:%M:%S,%3')} - root - INFO - step: {s:2d}  loss: {_loss(r):7.4f}  "
        f"grad_norm: {r.random():.4f}  memory: {50 + r.random():.2f}GiB(63.1%)  tps: {r.randrange(4000, 9000):,}  mfu: 38.1%"
    ),
    "megatron": lambda t, s, r: (
        f" [{day(t, '%Y-%m-%d %H:%M:%S.%f')}] iteration {s:8d}/  500000 | consumed samples: {s * 1024:12d} | "
        f"elapsed time per iteration (ms): {2000 + 60 * r.random():.1f} | learning rate: 1.5E-04 | "
        f"lm loss: {_loss(r):.6E} | loss scale: 1.0 | grad norm: {r.random():.3f} | number of skipped iterations:   0 |"
    ),
    "deepspeed": lambda t, s, r: (
        f"[{day(t, '%Y-%m-%d %H:%M:%S,%3')}] [INFO] [logging.py:96:log_dist] [Rank 0] step={s}, skipped=0, "
        f"lr=[{r.random():.3e}], mom=[(0.9, 0.95)]"
    ),
    "hf": lambda t, s, r: (
        f"{{'loss': {_loss(r):.4f}, 'grad_norm': {r.random():.4f}, 'learning_rate': 1.9e-05, 'epoch': {s / 500:.2f}}}"
    ),
    "tqdm": lambda t, s, r: (
        f"\rTraining:  {s // 10:2d}%|{'█' * (s // 100)}{' ' * (10 - s // 100)}| {s}/1000 "
        f"[{s * 2 // 60:02d}:{s * 2 % 60:02d}<{(1000 - s) * 2 // 60:02d}:10,  2.0{r.randrange(9)}s/it, loss={_loss(r):.3f}]"
    ),
    "lightning": lambda t, s, r: (
        f"\rEpoch 0:  {s // 10:2d}%|{'▏' * (s // 100)}{' ' * (10 - s // 100)}| {s}/1000 "
        f"[{s * 2 // 60:02d}:{s * 2 % 60:02d}<{(1000 - s) * 2 // 60:02d}:10,  0.49it/s, v_num=3, train_loss={_loss(r):.3f}]"
    ),
    "plain": lambda t, s, r: f"epoch 3 it {s} loss {_loss(r):.4f} {r.randrange(9000, 9900)} tok/s",
    "composer": lambda t, s, r: (
        f"[batch={s}/4800]:\n\t Train time/batch: {s - 1}\n\t Train loss/train/total: {_loss(r):.4f}\n"
        f"\t Train throughput/samples_per_sec: {r.randrange(90, 99)}.0312"
    ),
}


_PRINTED = ("hf", "plain", "megatron", "composer")
"""Styles that print; loggers and progress bars write to standard error."""


RAISES = (
    ("RuntimeError", "expected scalar type BFloat16 but found Float ({n})"),
    ("ValueError", "could not broadcast input array from shape ({n},) into shape (4096,)"),
    ("FileNotFoundError", "[Errno 2] No such file or directory: '/fsx/tok/{n}.idx'"),
    ("IndexError", "index {n} is out of bounds for dimension 0 with size 512"),
    ("KeyError", "'sample_{n}'"),
    ("UnicodeDecodeError", "'utf-8' codec can't decode byte 0x9{d} in position {n}: invalid start byte"),
    ("PIL.UnidentifiedImageError", "cannot identify image file <_io.BytesIO object at 0x7f{n}>"),
    ("zlib.error", "Error -3 while decompressing data: incorrect data check {n}"),
    ("pyarrow.lib.ArrowInvalid", "Parquet magic bytes not found in footer of /fsx/{n}.parquet"),
    ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate {n}.00 MiB. GPU {g} has a total capacity of 79.11 GiB "
     "of which 61.44 MiB is free. Including non-PyTorch memory, this process has 79.04 GiB memory in use."),
    ("AssertionError", "labels out of range: {n}"),
    ("TypeError", "unsupported operand type(s) for +: 'NoneType' and 'Tensor' ({n})"),
)  # fmt: skip


def traceback(name: str, words: str, r: random.Random) -> list[str]:
    """Format a traceback as Python prints it."""
    rows = [
        "Traceback (most recent call last):",
        '  File "/workspace/src/run.py", line 412, in <module>',
        "    main(cfg)",
    ]
    for function in r.sample(("fit", "training_step", "_next_data", "collate", "forward", "encode"), 3):
        rows += [
            f'  File "/workspace/src/{r.choice(("engine", "data/ds", "model"))}.py", line {r.randrange(20, 900)}, in {function}',
            f"    out = {function}_inner(batch)",
        ]
    return [*rows, f"{name}: {words}"]


def does_print(job: Job, rank: int) -> bool:
    """True if a rank prints its steps."""
    return {"all": True, "zero": rank == 0, "last": rank == job.ranks - 1, "node": rank % PER_NODE == 0}[job.who]


def progress_line(job: Job, rank: int, time: float, step: int, r: random.Random) -> Say:
    """Return a rank's line about a step."""
    if job.manner == "json":
        row = {"ts": day(time, "%Y-%m-%dT%H:%M:%S.%3Z"), "level": "info", "rank": rank, "msg": f"step {step} done",
               "loss": round(_loss(r), 4)}  # fmt: skip
        return Say(time, json.dumps(row))
    return Say(time, MANNERS[job.manner](time, step, r), err=job.manner not in _PRINTED)


def logged_line(job: Job, rank: int, time: float, text: str, level: str = "INFO") -> Say:
    """Return a line of the logger that does not show progress."""
    if job.manner == "json":
        row = {"ts": day(time, "%Y-%m-%dT%H:%M:%S.%3Z"), "level": level.lower(), "rank": rank, "msg": text}
        return Say(time, json.dumps(row))
    return Say(
        time,
        err=True,
        text=f"{day(time, '%Y-%m-%d %H:%M:%S,%3')} {level} [train.py:{40 if level == 'INFO' else 52}] {text}",
    )


def first_lines(job: Job, rank: int, nccl: bool, r: random.Random) -> list[Say]:
    """Return the lines of a rank before its first step."""
    time, rows = job.start + r.random(), []
    rows.append(logged_line(job, rank, time, f"initialised process group, world size {job.ranks}"))
    if nccl:
        host, local = job.host(rank), rank % PER_NODE
        bus = f"{0x19 + local * 0x14:x}000"
        job.joinable = True
        rows.append(Say(time + 4, (
            f"{host}:{2000 + local}:{3000 + local} [{local}] NCCL INFO ncclCommInitRankConfig comm 0x7f{rank:06x}00 rank "
            f"{rank} nranks {job.ranks} cudaDev {local} nvmlDev {local} busId {bus} commId 0x9a - Init COMPLETE"
        ), bare=True))  # fmt: skip
    rows.append(Say(
        time + 5, "/usr/lib/python3.12/site-packages/torch/utils/checkpoint.py:86: FutureWarning: `torch.cpu.amp."
        "autocast(args...)` is deprecated.\n  with torch.enable_grad()", err=True, bare=True,
    ))  # fmt: skip
    if job.who != "zero" or rank == 0:
        rows.append(logged_line(job, rank, time + 7, f"loaded {r.randrange(100, 999)} shards for this rank"))
    return rows


def error_lines(
    job: Job, rank: int, time: float, name: str, words: str, r: random.Random, *, mark: bool = True
) -> list[Say]:
    """Return an exception as a rank prints it."""
    rows = traceback(name, words, r)
    if job.manner == "json":
        text = "\n".join(rows)
        row = {"ts": day(time, "%Y-%m-%dT%H:%M:%S.%3Z"), "level": "error", "rank": rank, "msg": "training failed",
               "exc_info": text}  # fmt: skip
        return [Say(time, json.dumps(row), err=True)]
    lead = f"[rank{rank}]: " if mark else ""
    return [Say(time + n / 1e4, f"{lead}{row}", err=True, bare=True) for n, row in enumerate(rows)]
