"""Logs of jobs as many launchers and loggers leave them, with one thing that goes wrong; what triage makes of them.

    .venv/bin/python benchmarks/triage_styles.py --seed 1 --jobs 60
    .venv/bin/python benchmarks/triage_styles.py --seed 1 --only 17 --keep /tmp/job   # one of them, to look at

A job is drawn by its number from the seed: a layout (who writes into which file, with which prefix), a manner of
logging, who of the ranks prints progress, and a fault. A job counts as right if the first rank and its line, those who
followed, those who fell silent, the report of the machine and the number of ranks are all right.
"""

# ruff: noqa: E501, ISC004, PLR0912, PLR0917 - lines of logs as they are printed; each fault has one signature

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from dtdebug.triage import command, show
from dtdebug.triage.part import decode, encode
from dtdebug_taxonomy.diagnosis import diagnose
from dtdebug_taxonomy.knowledge import load

PER_NODE = 8
HEALTHY = ("fine", "fine-one-quiet", "fine-zero-only", "fine-retried", "fine-no-goodbye")
ENDED = ("time-limit", "preempted", "evicted")
FAULTS = (
    "raises", "raises-sigterm", "raises-gloo", "cuda-oom", "assert", "hang", "killed", "segfault", "bus", "ecc",
    "restart", *ENDED, *HEALTHY,
)  # fmt: skip


class Say(NamedTuple):
    """One line of one rank."""

    time: float
    text: str
    err: bool = False
    bare: bool = False
    """Not by the logger: a traceback, a library's own line."""


@dataclass
class Job:
    """What is true of a job."""

    ranks: int
    layout: str
    manner: str
    who: str
    fault: str
    start: float
    hosts: list[str]
    culprit: int | None = None
    marker: str = ""
    """Words that stand in the line of the culprit's failure."""
    exception: str = ""
    silent: set[int] = field(default_factory=set)
    followed: set[int] = field(default_factory=set)
    code: str = ""
    joinable: bool = False
    says: list[list[Say]] = field(default_factory=list)
    agents: dict[str, list[Say]] = field(default_factory=dict)
    """Host -> what its launcher prints."""
    kernel: dict[str, list[str]] = field(default_factory=dict)
    before: list[list[Say]] = field(default_factory=list)
    """What the ranks said in an earlier attempt."""

    def host(self, rank: int) -> str:
        """Where a rank runs."""
        return self.hosts[rank // PER_NODE]


def day(time: float, form: str) -> str:
    """A time as text; `%f` with three digits where the form has `%3`."""
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
"""Manners that print; loggers and bars write to standard error."""
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
    """As Python prints one."""
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


def draw(seed: int, number: int, sizes: tuple[int, ...]) -> Job:
    """The job of that number."""
    r = random.Random(seed * 1_000_003 + number)
    layout = list(LAYOUTS)[(number + seed) % len(LAYOUTS)]
    ranks = r.choice(sizes)
    manner = "json" if layout == "json-lines" else r.choice(list(MANNERS))
    name = r.choice(("nid{:06d}", "ip-10-0-{}-17", "h100-{:03d}", "gpu{:d}", "a3mega-{:d}", "r07n{:02d}"))
    base = r.randrange(10, 90)
    job = Job(
        ranks, layout, manner, r.choice(("all", "zero", "last", "node")), FAULTS[(number * 7 + seed * 3) % len(FAULTS)],
        datetime(2026, 1 + seed % 12, 1 + number % 28, 7, 12, tzinfo=UTC).timestamp(),
        [name.format(base + n) for n in range(ranks // PER_NODE)],
    )  # fmt: skip
    if manner == "deepspeed":  # what is logged so says of which rank it is
        job.who = "zero"
    if layout in PODS:
        job.hosts = [f"llm-worker-{n}" for n in range(len(job.hosts))]
    if layout == "sagemaker":
        job.hosts = [f"algo-{n + 1}" for n in range(len(job.hosts))]
    _play(job, r)
    return job


def _play(job: Job, r: random.Random) -> None:
    steps, at = r.randrange(60, 160), 0
    nccl = job.fault in ("bus", "ecc", "killed") or r.random() < 0.3
    begin = [_begin(job, rank, nccl, r) for rank in range(job.ranks)]
    for rank in range(job.ranks):
        rows = begin[rank]
        for step in range(1, steps + 1):
            if _prints(job, rank):
                rows.append(_progress(job, rank, job.start + 20 + 2 * step + r.random() * 0.2, step, r))
        job.says.append(rows)
    at = job.start + 20 + 2 * steps
    if job.fault not in HEALTHY and job.fault not in ENDED:
        job.culprit = r.randrange(job.ranks)
    _FAULT[job.fault](job, at, r)
    for rows in (*job.says, *job.before):
        rows.sort(key=lambda say: say.time)


def _prints(job: Job, rank: int) -> bool:
    return {"all": True, "zero": rank == 0, "last": rank == job.ranks - 1, "node": rank % PER_NODE == 0}[job.who]


def _progress(job: Job, rank: int, time: float, step: int, r: random.Random) -> Say:
    if job.manner == "json":
        row = {"ts": day(time, "%Y-%m-%dT%H:%M:%S.%3Z"), "level": "info", "rank": rank, "msg": f"step {step} done",
               "loss": round(_loss(r), 4)}  # fmt: skip
        return Say(time, json.dumps(row))
    return Say(time, MANNERS[job.manner](time, step, r), err=job.manner not in _PRINTED)


def _logged(job: Job, rank: int, time: float, text: str, level: str = "INFO") -> Say:
    """A line of the logger that is no progress."""
    if job.manner == "json":
        row = {"ts": day(time, "%Y-%m-%dT%H:%M:%S.%3Z"), "level": level.lower(), "rank": rank, "msg": text}
        return Say(time, json.dumps(row))
    return Say(
        time,
        err=True,
        text=f"{day(time, '%Y-%m-%d %H:%M:%S,%3')} {level} [train.py:{40 if level == 'INFO' else 52}] {text}",
    )


def _begin(job: Job, rank: int, nccl: bool, r: random.Random) -> list[Say]:
    time, rows = job.start + r.random(), []
    rows.append(_logged(job, rank, time, f"initialised process group, world size {job.ranks}"))
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
        rows.append(_logged(job, rank, time + 7, f"loaded {r.randrange(100, 999)} shards for this rank"))
    return rows


def _error(
    job: Job, rank: int, time: float, name: str, words: str, r: random.Random, *, mark: bool = True
) -> list[Say]:
    rows = traceback(name, words, r)
    if job.manner == "json":
        text = "\n".join(rows)
        row = {"ts": day(time, "%Y-%m-%dT%H:%M:%S.%3Z"), "level": "error", "rank": rank, "msg": "training failed",
               "exc_info": text}  # fmt: skip
        return [Say(time, json.dumps(row), err=True)]
    lead = f"[rank{rank}]: " if mark else ""
    return [Say(time + n / 1e4, f"{lead}{row}", err=True, bare=True) for n, row in enumerate(rows)]


def _own(job: Job, at: float, r: random.Random, kind: tuple[str, str] | None = None) -> None:
    rank = job.culprit or 0
    name, words = kind or r.choice(RAISES)
    words = words.format(n=r.randrange(10**5, 10**6), d=r.randrange(9), g=rank % PER_NODE)
    job.exception, job.marker = name.rpartition(".")[2], words[:60]
    job.says[rank] += _error(job, rank, at + 1, name, words, r)


def _watchdogs(job: Job, at: float, r: random.Random, wait: int = 600) -> None:
    seq, kind = r.randrange(2000, 90000), r.choice(("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"))
    for rank in range(job.ranks):
        if rank == job.culprit:
            continue
        time = at + wait + r.random() * 3
        glog = f"[E{day(time, '%m%d %H:%M:%S.%f')}000 ProcessGroupNCCL.cpp:{{}}] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
        late = (
            f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={kind}, NumelIn=51380224, "
            f"NumelOut=51380224, Timeout(ms)={wait}000) ran for {wait}0{r.randrange(10, 99)} milliseconds before timing out."
        )
        job.says[rank] += [
            Say(time, f"[rank{rank}]:{glog.format(632)} {late}", err=True, bare=True),
            Say(time + 0.1, f"[rank{rank}]:{glog.format(2271)} failure detected by watchdog at work sequence id: {seq} PG "
                f"status: last enqueued work: {seq + 2}, last completed work: {seq - 1}", err=True, bare=True),
            Say(time + 0.2, f"[rank{rank}]:{glog.format(684)} Some NCCL operations have failed or timed out. Due to the "
                "asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
                err=True, bare=True),
            Say(time + 0.3, "terminate called after throwing an instance of 'c10::DistBackendError'", err=True, bare=True),
            Say(time + 0.31, f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process group watchdog thread "
                f"terminated with exception: {late}", err=True, bare=True),
        ]  # fmt: skip
        job.followed.add(rank)
    for host in job.hosts:
        first = next(n for n in range(job.ranks) if job.host(n) == host and n != job.culprit)
        _report(job, host, at + wait + 8, first, "exitcode  : -6", "Signal 6 (SIGABRT) received by PID 1")


def _report(job: Job, host: str, time: float, rank: int, code: str, words: str) -> None:
    """What torchrun says where a worker of it has failed."""
    if host in job.agents:
        return
    if job.layout in _TASKS:
        job.agents[host] = [
            Say(time, _TASKS[job.layout](job, host, rank, int(code.split(":")[1])), err=True, bare=True)
        ]
        return
    local, pid = rank % PER_NODE, 5000 + rank % PER_NODE
    stamp = day(time, "%m%d %H:%M:%S.%f")
    number = code.split(":")[1].strip()
    rows = [
        f"W{stamp} 4777 torch/distributed/elastic/multiprocessing/api.py:900] Sending process {5000 + n} closing signal SIGTERM"
        for n in range(PER_NODE) if n != local
    ]  # fmt: skip
    rows += [
        f"E{stamp} 4777 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: {number}) local_rank: {local} "
        f"(pid: {pid}) of binary: /usr/bin/python3.12",
        "Traceback (most recent call last):",
        '  File "/usr/local/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        '  File "/usr/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 277, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "src/run.py FAILED",
        "-" * 60,
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {day(time, '%Y-%m-%d_%H:%M:%S')}",
        f"  host      : {host}",
        f"  rank      : {rank} (local_rank: {local})",
        f"  {code} (pid: {pid})",
        "  error_file: <N/A>",
        f"  traceback : {words}",
        "=" * 60,
    ]
    job.agents[host] = [Say(time + n / 1e4, row, err=True, bare=True) for n, row in enumerate(rows)]


_SIGNALS = {-6: "Aborted", -9: "Killed", -11: "Segmentation fault"}


def _srun(job: Job, host: str, rank: int, code: int) -> str:
    return f"srun: error: {host}: task {rank}: {_SIGNALS.get(code, f'Exited with exit code {code}')}"


def _mpirun(job: Job, host: str, rank: int, code: int) -> str:
    if code < 0:
        return f"mpirun noticed that process rank {rank} with PID 0 on node {host} exited on signal {-code} ({_SIGNALS[code]})."
    return f"mpirun detected that one or more processes exited with non-zero status:\n\n  Process name: [[41010,1],{rank}]\n  Exit code:    {code}"


_TASKS: dict[str, Callable[[Job, str, int, int], str]] = {
    "slurm-labels": _srun, "slurm-task": _srun, "rank-host": _srun, "rank-files": _srun, "sagemaker": _mpirun,
    "ray": lambda job, host, rank, code: f"ray.exceptions.ActorDiedError: worker of {host} died, exit code {code}",
}  # fmt: skip
"""What a launcher other than torchrun says of a rank that failed."""
_PAGE = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def _raises(job: Job, at: float, r: random.Random) -> None:
    _own(job, at, r)
    _report(job, job.host(job.culprit or 0), at + 6, job.culprit or 0, "exitcode  : 1", _PAGE)
    _watchdogs(job, at, r, r.choice((480, 600, 1800)))


def _raises_sigterm(job: Job, at: float, r: random.Random) -> None:
    """The launcher ends all others at once: they say nothing."""
    _own(job, at, r)
    _report(job, job.host(job.culprit or 0), at + 3, job.culprit or 0, "exitcode  : 1", _PAGE)


def _raises_gloo(job: Job, at: float, r: random.Random) -> None:
    _own(job, at, r)
    for rank in range(job.ranks):
        if rank != job.culprit:
            words = (
                f"[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.{rank % 200}.7]:"
                f"{r.randrange(20000, 60000)}"
            )
            job.says[rank] += _error(job, rank, at + 1.5 + r.random(), "RuntimeError", words, r)
            job.followed.add(rank)


def _cuda_oom(job: Job, at: float, r: random.Random) -> None:
    _own(job, at, r, RAISES[9])
    _watchdogs(job, at, r)


def _device_assert(job: Job, at: float, r: random.Random) -> None:
    rank = job.culprit or 0
    job.says[rank].append(Say(
        at + 0.9, f"/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1553: indexSelectLargeIndex: block: [{r.randrange(99)},0,0], "
        "thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.", err=True, bare=True,
    ))  # fmt: skip
    _own(job, at, r, ("torch.AcceleratorError", "CUDA error: device-side assert triggered"))
    _watchdogs(job, at, r)


def _hang(job: Job, at: float, r: random.Random) -> None:
    _watchdogs(job, at, r)
    job.silent = {job.culprit or 0}


def _killed(job: Job, at: float, r: random.Random) -> None:
    rank = job.culprit or 0
    pid = 2000 + rank % PER_NODE
    job.code, host = "OOM killer", job.host(rank)
    job.kernel[host] = _kernel(host, at, r, f"Out of memory: Killed process {pid} (python3) total-vm:812345678kB, "
        "anon-rss:412345678kB, file-rss:0kB, shmem-rss:1024kB, UID:0 pgtables:812345kB oom_score_adj:0")  # fmt: skip
    _report(job, host, at + 2, rank, "exitcode  : -9", f"Signal 9 (SIGKILL) received by PID {5000 + rank % PER_NODE}")
    _watchdogs(job, at, r)


def _segfault(job: Job, at: float, r: random.Random) -> None:
    rank = job.culprit or 0
    job.says[rank] += [
        Say(at + 1 + n / 1e3, text, err=True, bare=True)
        for n, text in enumerate((
            "Fatal Python error: Segmentation fault", "", "Current thread 0x00007f1 (most recent call first):",
            '  File "/workspace/src/data/ds.py", line 77 in decode', '  File "/workspace/src/run.py", line 412 in <module>',
        ))
    ]  # fmt: skip
    job.marker = "Segmentation fault"
    _report(job, job.host(rank), at + 3, rank, "exitcode  : -11", "Signal 11 (SIGSEGV) received by PID 5001")
    _watchdogs(job, at, r)


def _xid(code: str, what: str) -> Callable[[Job, float, random.Random], None]:
    def play(job: Job, at: float, r: random.Random) -> None:
        rank = job.culprit or 0
        host, bus = job.host(rank), f"0000:{0x19 + rank % PER_NODE * 0x14:02x}:00"
        job.code = code
        job.kernel[host] = _kernel(host, at, r, f"NVRM: Xid (PCI:{bus}): {code.split()[1]}, "
            + what.format(pid=2000 + rank % PER_NODE))  # fmt: skip
        job.silent = {rank}
        _watchdogs(job, at, r)

    return play


def _kernel(host: str, at: float, r: random.Random, what: str) -> list[str]:
    lead = r.choice((
        lambda t: f"{day(t, '%b %d %H:%M:%S')} {host} kernel: ",
        lambda t: f"{day(t, '%Y-%m-%dT%H:%M:%S.%f')}+00:00 {host} kernel: [{t % 10**6:.6f}] ",
        lambda t: f"[{day(t, '%a %b %e %H:%M:%S %Y')}] ",
    ))  # fmt: skip
    return [
        f"{lead(at - 300 + n)}{'audit: type=1400 apparmor=ALLOWED' if n % 2 else 'nvidia-uvm: Loaded the UVM driver'}" for n in range(20)
    ] + [f"{lead(at)}{what}"]  # fmt: skip


def _restart(job: Job, at: float, r: random.Random) -> None:
    """The first attempt failed elsewhere; the last one is asked for."""
    before = (job.culprit or 0) + 1 if (job.culprit or 0) + 1 < job.ranks else 0
    earlier = [[say._replace(time=say.time - 2000) for say in rows] for rows in job.says]
    earlier = [[_again(job, rank, say, r) for say in rows] for rank, rows in enumerate(earlier)]
    earlier[before] += _error(job, before, at - 1990, "ConnectionResetError", "[Errno 104] Connection reset by peer", r)
    job.before = earlier
    _own(job, at, r)
    _watchdogs(job, at, r)


def _again(job: Job, rank: int, say: Say, r: random.Random) -> Say:
    return say if say.bare else _logged(job, rank, say.time, f"warmup, shard {r.randrange(99)}")


def _time_limit(job: Job, at: float, r: random.Random) -> None:
    _ended(job, at, f"slurmstepd: error: *** STEP 48213.0 ON {job.hosts[0]} CANCELLED AT {{t}} DUE TO TIME LIMIT ***")


def _preempted(job: Job, at: float, r: random.Random) -> None:
    _ended(job, at, f"slurmstepd: error: *** JOB 48213 ON {job.hosts[0]} CANCELLED AT {{t}} DUE TO PREEMPTION ***")


def _evicted(job: Job, at: float, r: random.Random) -> None:
    _ended(job, at, "Warning  Evicted  12s  kubelet  The node was low on resource: ephemeral-storage.")


def _ended(job: Job, at: float, text: str) -> None:
    job.agents[job.hosts[0]] = [Say(at + 3, text.format(t=day(at + 3, "%Y-%m-%dT%H:%M:%S")), err=True, bare=True)]


def _goodbye(job: Job, at: float, ranks: set[int]) -> None:
    for rank in ranks:
        job.says[rank].append(_logged(job, rank, at + 5, "training finished, closing"))
        job.says[rank].append(Say(at + 6, (
            f"[rank{rank}]:[W{day(at + 6, '%m%d %H:%M:%S.%f')}000 ProcessGroupNCCL.cpp:1496] Warning: WARNING: "
            "destroy_process_group() was not called before program exit, which can leak resources."
        ), err=True, bare=True))  # fmt: skip


def _fine(job: Job, at: float, r: random.Random) -> None:
    _goodbye(job, at, set(range(job.ranks)))


def _fine_one_quiet(job: Job, at: float, r: random.Random) -> None:
    """One rank prints its first lines only; or all that the others do but for the end."""
    quiet = r.randrange(job.ranks)
    if r.random() < 0.6:
        job.says[quiet] = [say for say in job.says[quiet] if say.time < job.start + 20]
    _goodbye(job, at, set(range(job.ranks)) - {quiet})


def _fine_zero_only(job: Job, at: float, r: random.Random) -> None:
    for rank in range(1, job.ranks):
        job.says[rank] = [say for say in job.says[rank] if say.time < job.start + 20]
    _goodbye(job, at, {0})


def _fine_retried(job: Job, at: float, r: random.Random) -> None:
    for rank in r.sample(range(job.ranks), 3):
        when = job.start + 40
        rows = traceback("botocore.exceptions.EndpointConnectionError", "Could not connect to the endpoint URL", r)
        job.says[rank] += [Say(when + n / 1e4, row, err=True, bare=True) for n, row in enumerate(rows)]
        job.says[rank].append(
            _logged(job, rank, when + 0.1, "reading failed, retrying in 5 s (attempt 1/3)", "WARNING")
        )
    _goodbye(job, at, set(range(job.ranks)))


def _fine_no_goodbye(job: Job, at: float, r: random.Random) -> None:
    """Some hosts' last ranks end a little earlier, as evaluation is left to the others."""
    for rank in range(0, job.ranks, 2):
        job.says[rank].append(_logged(job, rank, at + 200, "evaluation finished"))


_FAULT: dict[str, Callable[[Job, float, random.Random], None]] = {
    "raises": _raises, "raises-sigterm": _raises_sigterm, "raises-gloo": _raises_gloo, "cuda-oom": _cuda_oom,
    "assert": _device_assert, "hang": _hang, "killed": _killed, "segfault": _segfault,
    "bus": _xid("Xid 79", "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
    "ecc": _xid("Xid 48", "pid={pid}, name=python3, An uncorrectable double bit error (DBE) has been detected on GPU."),
    "restart": _restart, "time-limit": _time_limit, "preempted": _preempted, "evicted": _evicted, "fine": _fine,
    "fine-one-quiet": _fine_one_quiet, "fine-zero-only": _fine_zero_only, "fine-retried": _fine_retried,
    "fine-no-goodbye": _fine_no_goodbye,
}  # fmt: skip


class Files:
    """The files of a job, in memory until all is said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, list[tuple[float, str]]] = {}

    def put(self, name: str, say: Say, prefix: str = "") -> None:
        """One line, with what its collector puts before each line of it."""
        text = say.text if say.text.startswith("\r") and not prefix else say.text.lstrip("\r")
        self.rows.setdefault(name, []).append((say.time, "\n".join(f"{prefix}{row}" for row in text.split("\n"))))

    def write(self) -> None:
        """Writes all, by time."""
        for name, rows in self.rows.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            rows.sort(key=lambda row: row[0])
            text = "".join(row if row.startswith("\r") else f"\n{row}" for _, row in rows)
            path.write_text(text.lstrip("\n") + "\n")


Layout = Callable[[Job, Files, int, Say, int], None]


def _node_of(job: Job, rank: int) -> tuple[str, int]:
    return job.host(rank), rank % PER_NODE


def _log_dir(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    host, local = _node_of(job, rank)
    out.put(f"torchrun/{host}/48213_k2x9d/attempt_{attempt}/{local}/std{'err' if say.err else 'out'}.log", say)


def _slurm_task(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    out.put(f"slurm-48213_{rank}.{'err' if say.err else 'out'}", say)


def _slurm_node(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    """One file a node, torchrun --tee within."""
    host, local = _node_of(job, rank)
    out.put(f"pretrain_48213_{host}.out", say, f"[default{local}]:")


def _slurm_labels(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    out.put("slurm-48213.out", say, f"{rank:>{len(str(job.ranks - 1))}}: ")


def _rank_host(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    host, local = _node_of(job, rank)
    out.put(f"logs/{host}.local{local}.global_rank{rank}.log", say)


def _kubectl(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    """Pods running torchrun, all in one file by `kubectl logs --prefix`."""
    out.put("kubectl.log", say, f"[pod/{job.host(rank)}/pytorch] ")


def _kubectl_tee(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    host, local = _node_of(job, rank)
    out.put(f"{host}.log", say, f"{day(say.time, '%Y-%m-%dT%H:%M:%S.%f')}123Z [default{local}]:")


def _stern(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    host, local = _node_of(job, rank)
    out.put("stern.txt", say, f"{host} pytorch [default{local}]:")


def _ray(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    node, local = rank // PER_NODE, rank % PER_NODE
    out.put("driver.log", say, f"(RayTrainWorker pid={40_000 + local}, ip=10.4.{node}.9) ")


def _json_lines(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    """Structured logs of all, one file a node; what is not the logger's is wrapped by the collector."""
    host = job.host(rank)
    if say.text.startswith("{"):
        row = {**json.loads(say.text), "host": host}
    else:
        row = {"ts": day(say.time, "%Y-%m-%dT%H:%M:%S.%3Z"), "stream": "stderr", "host": host, "rank": rank}
    for line in say.text.split("\n") if "msg" not in row else [""]:
        out.put(f"fluentbit/{host}.jsonl", Say(say.time, json.dumps(row if "msg" in row else {**row, "log": line})))


def _sagemaker(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    host = job.host(rank)
    out.put("cloudwatch.log", say, f"[1,mpirank:{rank},{host}]<std{'err' if say.err else 'out'}>:")


def _lightning_files(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    out.put(f"lightning_logs/version_3/rank_{rank:03d}.txt", say)


LAYOUTS: dict[str, Layout] = {
    "log-dir": _log_dir, "slurm-task": _slurm_task, "slurm-node": _slurm_node, "slurm-labels": _slurm_labels,
    "rank-host": _rank_host, "kubectl": _kubectl, "kubectl-tee": _kubectl_tee, "stern": _stern, "ray": _ray,
    "json-lines": _json_lines, "sagemaker": _sagemaker, "rank-files": _lightning_files,
}  # fmt: skip
PODS = ("kubectl", "kubectl-tee", "stern")


def write(job: Job, folder: Path) -> None:
    """The job's logs."""
    out = Files(folder)
    layout = LAYOUTS[job.layout]
    for attempt, of in enumerate(([job.before] if job.before else []) + [job.says]):
        for rank, rows in enumerate(of):
            for say in rows:
                layout(job, out, rank, say, attempt)
    single = {"slurm-labels": "slurm-48213.out", "ray": "driver.log", "sagemaker": "cloudwatch.log"}
    for host, rows in job.agents.items():
        for say in rows:
            if job.layout == "slurm-node":
                out.put(f"pretrain_48213_{host}.out", say)
            elif job.layout == "kubectl":
                out.put("kubectl.log", say, f"[pod/{host}/pytorch] ")
            elif job.layout == "kubectl-tee":
                out.put(f"{host}.log", say, f"{day(say.time, '%Y-%m-%dT%H:%M:%S.%f')}123Z ")
            elif job.layout == "stern":
                out.put("stern.txt", say, f"{host} pytorch ")
            elif job.layout == "json-lines":
                row = {"ts": day(say.time, "%Y-%m-%dT%H:%M:%S.%3Z"), "stream": "stderr", "host": host, "log": say.text}
                out.put(f"fluentbit/{host}.jsonl", Say(say.time, json.dumps(row)))
            else:
                out.put(single.get(job.layout, f"launcher/{host}.err"), say)
    if job.before and job.layout != "log-dir":
        time = job.start - 1000
        for host in job.hosts:
            say = Say(time, f"I{day(time, '%m%d %H:%M:%S.%f')} 4777 torch/distributed/elastic/agent/server/api.py:946] [default] "
                "Worker group FAILED. 2/3 attempts left; will restart worker group")  # fmt: skip
            if job.layout == "slurm-node":
                out.put(f"pretrain_48213_{host}.out", say)
    out.write()
    for host, lines in job.kernel.items():
        (folder / f"{host}.dmesg").write_text("\n".join(lines) + "\n")


def judge(job: Job, folder: Path) -> list[str]:
    """What is wrong in the form for programs."""
    part = command.read_part([str(folder)], 1)
    found = command.job_of(decode(encode(part), "part"))
    data = json.loads(json.dumps(show.data(found, diagnose(load(), found.snapshot)), default=str))
    wrong = []

    def check(what: str, good: bool, saw: Any) -> None:
        if not good:
            wrong.append(f"{what}: {str(saw)[:160]}")

    unnamed = job.layout == "kubectl"  # torchrun without --tee: lines of eight ranks without a name
    known = job.ranks
    if unnamed or (job.layout == "ray" and job.ranks - data["ranks"] == 1):  # one process that says nothing of its rank
        known = data["ranks"]
    check("ranks", data["ranks"] == known, data["ranks"])
    first = [row["rank"] for row in data["first"]]
    verdict = data["verdict"]
    if job.culprit is None:
        check("first", not first, (first[:4], [row["text"][:80] for row in data["first"][:2]]))
        check("silent", not data["silent"], data["silent"][:2])
        check("culprits", not verdict.get("culprits"), (verdict.get("culprits"), verdict.get("summary")))
        check("cascade", not data["cascade"]["ranks"], data["cascade"]["ranks"][:4])
        if job.fault in ENDED:
            check("ended", bool(data["ended"]), data["ended"])
        return wrong
    if unnamed and first[:1] == [None]:  # which of eight ranks printed it is not said
        return wrong
    check("first", bool(first) and first[0] == job.culprit, (first[:3], "not", job.culprit, verdict.get("summary")))
    check("others", all(rank == job.culprit for rank in first), first[:4])
    if job.marker and first and first[0] == job.culprit:
        row = data["first"][0]
        lines = Path(row["file"]).read_bytes().decode().split("\n")
        text = "".join(lines[max(row["line"] - 1, 0) : row["line"]])
        words = json.dumps(job.marker[:24])[1:-1]
        check("line", words in text or job.marker[:24] in text, (row["file"], row["line"], text[:60]))
        if job.exception:
            check("exception", row["exception"] == job.exception, row["exception"])
    cascade = set(data["cascade"]["ranks"])
    check("cascade", not job.followed or len(cascade & job.followed) >= 0.95 * len(job.followed), len(cascade))
    check("cascade", job.culprit not in cascade, "culprit is in it")
    silent = {row["rank"] for row in data["silent"]}
    check("silent", job.silent <= silent or unnamed, (sorted(silent)[:4], "not", job.silent))
    check("silent", len(silent - {job.culprit}) == 0, sorted(silent)[:4])
    if job.code:
        rows = [row for row in data["hardware"] if row["code"] == job.code]
        check("hardware", bool(rows), data["hardware"][:1])
        if rows and job.joinable:
            check("device", rows[0]["rank"] == job.culprit, (rows[0]["rank"], "not", job.culprit))
    return wrong


def main() -> None:
    """Runs the jobs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--only", type=int)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 64, 128, 256])
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    bad: Counter[str] = Counter()
    wrong = 0
    numbers = range(options.jobs) if options.only is None else [options.only]
    for number in numbers:
        job = draw(options.seed, number, tuple(options.sizes))
        folder = options.keep or Path(tempfile.mkdtemp())
        try:
            write(job, folder)
            faults = judge(job, folder)
        finally:
            if options.keep is None:
                shutil.rmtree(folder)
        if faults:
            wrong += 1
            print(
                f"{number:3d} {job.layout:12} {job.manner:10} {job.who:5} {job.fault:14} {job.ranks:4} culprit {job.culprit}"
            )
            for fault in faults:
                print(f"      {fault}", flush=True)
            bad.update({fault.partition(":")[0] for fault in faults})
    print(f"seed {options.seed}: {wrong} of {len(numbers)} jobs have anything wrong; {dict(bad)}")


if __name__ == "__main__":
    main()
