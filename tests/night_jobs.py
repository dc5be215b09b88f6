"""Jobs of 8 to 512 ranks that fail at night: one fault each, as launchers and schedulers leave their output.

Each seed is another job. Its output is written twice, as one file and as one file per node, with what is true of it.
Lines have the form of those in `tests/nccl` and `tests/samples`, which real jobs printed.
"""

# ruff: noqa: E501, ISC004 - lines of logs as they are printed

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

MANNERS = ("slurm-nodes", "slurm-nodes-labelled", "slurm-ranks", "slurm-ranks-labelled", "torchrun", "torchrun-tee",
           "mpirun", "pods", "ray")  # fmt: skip
"""slurm-nodes: one task a node, which runs torchrun; slurm-ranks: one task a rank; labelled: with `srun -l`."""
FAULTS = ("silent", "lagging", "raised", "killed", "stopped", "fine")
SIZES = (8, 16, 32, 64, 128, 256, 512)
_RAISED = (
    ("ValueError", "shard /data/c4/part-{n}.bin is truncated"),
    ("KeyError", "'input_ids_{n}'"),
    ("OSError", "[Errno 5] Input/output error: '/mnt/set/{n}.tar'"),
    ("ZeroDivisionError", "division by zero"),
    ("AssertionError", "sequence of {n} tokens"),
)
_STEPS: tuple[Callable[[datetime, int, random.Random], str], ...] = (
    lambda t, s, r: f"{t:%Y-%m-%d %H:%M:%S},{t.microsecond // 1000:03d} - INFO - step {s} loss {2 + r.random():.4f}",
    lambda t, s, r: (
        f"[{t:%Y-%m-%d %H:%M:%S}] iteration {s:8d}/  500000 | lm loss: {2 + r.random():.6E} | lr: 1.5E-04 |"
    ),
    lambda t, s, r: f"step {s} loss {2 + r.random():.4f} {r.randrange(9000, 9900)} tok/s",
    lambda t, s, r: f"{t:%H:%M:%S} epoch 3 it={s} loss={2 + r.random():.3f}",
)
_ENDS = (
    "training finished in 3.2 h",
    "Training completed. Best validation loss 2.113",
    "{'train_runtime': 2713.2, 'train_samples_per_second': 99.1, 'epoch': 3.0}",
    "`Trainer.fit` stopped: `max_steps=%d` reached.",
    "saved /ckpt/final.pt; validation loss 2.1; done.",
)


class _Line(NamedTuple):
    time: datetime
    node: int
    rank: int | None
    """None for the launcher's own."""
    text: str
    whole: bool = False
    """The scheduler's, printed once for the job and without any prefix."""


class Planted(NamedTuple):
    """What is true of a job, and where its output is."""

    manner: str
    fault: str
    ranks: int
    culprit: int
    step: int
    """The last step that was printed."""
    file: Path
    folder: Path


class _Job:
    """A job while its lines are made."""

    def __init__(self, seed: int, manner: str, fault: str, ranks: int) -> None:
        self.r = random.Random(seed)
        self.manner, self.fault, self.ranks = manner, fault, ranks
        self.per_node = 8 if ranks >= 16 else self.r.choice((2, 4, 8))
        if manner.startswith("torchrun") and ranks <= 16:
            self.per_node = ranks
        self.culprit = self.r.randrange(1, ranks)
        stem = self.r.choice(("node-", "gpu", "nid00", "h100-"))
        self.hosts = [f"{stem}{n + self.r.choice((0, 1)) if not n else n + 1:02d}" for n in range(self.nodes)]
        if manner == "pods":
            self.hosts = [f"trainer-worker-{n}" for n in range(self.nodes)]
        self.start = datetime(2026, 3, 1 + seed % 27, self.r.randrange(20), self.r.randrange(60), 7, tzinfo=UTC)
        self.lines: list[_Line] = []
        self.by_tasks = manner.startswith("slurm")
        self.task_is_rank = manner.startswith("slurm-ranks")
        self.elastic = manner in ("slurm-nodes", "slurm-nodes-labelled", "torchrun", "torchrun-tee", "pods")

    @property
    def nodes(self) -> int:
        """How many."""
        return -(-self.ranks // self.per_node)

    def node(self, rank: int) -> int:
        """Where a rank is."""
        return rank // self.per_node

    def say(self, time: datetime, rank: int, text: str) -> None:
        """A line of a rank."""
        self.lines.append(_Line(time, self.node(rank), rank, text))

    def launcher(self, time: datetime, node: int, text: str) -> None:
        """A line of a node's launcher."""
        self.lines.append(_Line(time, node, None, text))

    def scheduler(self, time: datetime, text: str) -> None:
        """A line of the job's scheduler: it stands in the first node's file."""
        self.lines.append(_Line(time, 0, None, text, whole=True))


def make(folder: Path, seed: int, manner: str, fault: str, ranks: int) -> Planted:
    """Write the output of one job."""
    job = _Job(seed, manner, fault, ranks)
    step = _train(job)
    end = job.start + timedelta(seconds=60 + 2 * step % 240)
    {"silent": _silent, "lagging": _lagging, "raised": _raised, "killed": _killed}.get(fault, lambda job, end: None)(
        job, end
    )
    if fault == "fine":
        _finish(job, end, step)
    folder.mkdir(parents=True, exist_ok=True)
    job.lines.sort(key=lambda line: line.time)
    one, parts = folder / "job.out", folder / "nodes"
    one.write_text("".join(f"{_prefixed(job, line, single=True)}\n" for line in job.lines))
    parts.mkdir()
    for node, host in enumerate(job.hosts):
        rows = [_prefixed(job, line, single=False) for line in job.lines if line.node == node]
        (parts / f"{host}.log").write_text("".join(f"{row}\n" for row in rows))
    return Planted(manner, fault, ranks, job.culprit, step, one, parts)


def _train(job: _Job) -> int:
    """The lines of a healthy run; return the last step."""
    r = job.r
    form, first = r.choice(_STEPS), r.randrange(0, 5000)
    every = r.choice((1, 10))
    prefixed = job.manner not in ("slurm-nodes", "slurm-ranks", "torchrun", "pods")
    told = range(job.ranks) if prefixed and job.ranks <= 64 and r.random() < 0.6 else (0,)
    nccl = job.manner in ("slurm-nodes", "slurm-ranks", "torchrun", "pods") or r.random() < 0.6
    if job.manner == "ray":
        for rank in range(job.ranks):
            node = job.node(rank)
            job.scheduler(job.start, f"(TrainController pid=900) - (node_id=a{node:03x}, ip=10.4.{node}.9, "
                f"pid={4000 + rank}) world_rank={rank}, local_rank={rank % job.per_node}, node_rank={node}")  # fmt: skip
    for rank in range(job.ranks):
        local = rank % job.per_node
        if nccl:
            job.say(job.start + timedelta(seconds=1), rank,
                f"{job.hosts[job.node(rank)]}:{4000 + local}:{4900 + local} [{local}] NCCL INFO ncclCommInitRank comm "
                f"0x55{rank:06x}00 rank {rank} nranks {job.ranks} cudaDev {local} nvmlDev {local} busId {0x19 + local:x}000 "
                "commId 0x9a - Init COMPLETE")  # fmt: skip
    count = r.randrange(20, 30)
    for n in range(count):
        time = job.start + timedelta(seconds=10 + 2 * n)
        for rank in told:
            job.say(time + timedelta(milliseconds=rank % 50), rank, form(time, first + n * every, r))
    return first + (count - 1) * every


def _glog(job: _Job, rank: int, time: datetime, line: int, text: str, group: bool = True) -> None:
    pg = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}] " if group else ""
    job.say(time, rank, f"[rank{rank}]:[E{time:%m%d %H:%M:%S.%f}123 ProcessGroupNCCL.cpp:{line}] {pg}{text}")


def _watchdogs(job: _Job, end: datetime, spare: set[int]) -> int:
    """The time-outs of all ranks but some; return the number of the collective."""
    r = job.r
    seq, op = r.randrange(2000, 90000), r.choice(("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE"))
    wait = r.choice((600, 1800))
    for rank in range(job.ranks):
        if rank in spare:
            continue
        time = end + timedelta(seconds=wait, milliseconds=r.randrange(900))
        late = (
            f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=51380224, "
            f"NumelOut=51380224, Timeout(ms)={wait}000) ran for {wait}0{r.randrange(10, 99)} milliseconds before timing out."
        )
        _glog(job, rank, time, 689, f"[Rank {rank}] {late}", group=False)
        _glog(job, rank, time + timedelta(milliseconds=1), 2303, f" failure detected by watchdog at work sequence id: {seq} "
            f"PG status: last enqueued work: {seq + r.choice((0, 0, 1, 2))}, last completed work: {seq - 1}")  # fmt: skip
        if r.random() < 0.8:
            job.say(time + timedelta(milliseconds=60), rank, f"[rank{rank}]:[E{time:%m%d %H:%M:%S.%f}123 "
                "ProcessGroupNCCL.cpp:733] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
                "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.")  # fmt: skip
            job.say(
                time + timedelta(milliseconds=90),
                rank,
                "terminate called after throwing an instance of 'c10::DistBackendError'",
            )
            job.say(time + timedelta(milliseconds=91), rank, f"  what():  [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Process "
                f"group watchdog thread terminated with exception: [Rank {rank}] {late}")  # fmt: skip
    ends = end + timedelta(seconds=wait + 4)
    for node in range(job.nodes):
        here = [n for n in range(node * job.per_node, min((node + 1) * job.per_node, job.ranks)) if n not in spare]
        if here:
            _ended(job, ends + timedelta(milliseconds=job.r.randrange(900)), r.choice(here), -6)
    _slurm_last(job, ends + timedelta(seconds=2), {*range(job.ranks)} - spare, "Aborted (core dumped)")
    return seq


def _ended(job: _Job, time: datetime, rank: int, code: int) -> None:
    """What a node's launcher says of the first of its ranks that ended."""
    node, local = job.node(rank), rank % job.per_node
    if not job.elastic:
        return
    stamp = f"{time:%m%d %H:%M:%S.%f}"
    names = {-6: "SIGABRT", -9: "SIGKILL"}
    rows = [
        f"W{stamp} 3777 torch/distributed/elastic/multiprocessing/api.py:1012] Sending process {4000 + n} closing signal SIGTERM"
        for n in range(job.per_node) if n != local
    ]  # fmt: skip
    why = f"Signal {-code} ({names[code]}) received by PID {4000 + local}" if code < 0 else (
        "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )  # fmt: skip
    rows += [
        f"E{stamp} 3777 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: {code}) local_rank: {local} "
        f"(pid: {4000 + local}) of binary: /usr/bin/python3.12",
        "Traceback (most recent call last):",
        '  File "/usr/bin/torchrun", line 10, in <module>',
        "    sys.exit(main())",
        '  File "/usr/lib/python3/site-packages/torch/distributed/launcher/api.py", line 317, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        "  <NO_OTHER_FAILURES>",
        "-" * 60,
        "Root Cause (first observed failure):",
        "[0]:",
        f"  time      : {time:%Y-%m-%d_%H:%M:%S}",
        f"  host      : {job.hosts[node]}",
        f"  rank      : {rank} (local_rank: {local})",
        f"  exitcode  : {code} (pid: {4000 + local})",
        "  error_file: <N/A>",
        f"  traceback : {why}",
        "=" * 60,
    ]
    for n, row in enumerate(rows):
        job.launcher(time + timedelta(microseconds=n), node, row)
    if job.by_tasks and job.r.random() < 0.7:
        job.scheduler(
            time + timedelta(milliseconds=40), f"srun: error: {job.hosts[node]}: task {node}: Exited with exit code 1"
        )


def _slurm_last(job: _Job, time: datetime, ranks: set[int], words: str) -> None:
    """What Slurm says of tasks that are ranks, and what mpirun says of one of its ranks."""
    if job.task_is_rank:
        for node in range(job.nodes):
            here = sorted(n for n in ranks if job.node(n) == node)
            if here:
                tasks = f"task {here[0]}" if len(here) == 1 else f"tasks {','.join(map(str, here))}"
                job.scheduler(time, f"srun: error: {job.hosts[node]}: {tasks}: {words}")
        job.scheduler(time + timedelta(seconds=1), "srun: Terminating StepId=88123.0")
    elif job.manner == "mpirun":
        rank = job.r.choice(sorted(ranks))
        signal = {"A": "6 (Aborted)", "K": "9 (Killed)"}.get(words[0])
        host = job.hosts[job.node(rank)]
        job.scheduler(time, "-" * 74)
        if signal:
            job.scheduler(time, f"mpirun noticed that process rank {rank} with PID {4000 + rank} on node {host} exited on "
                f"signal {signal}.")  # fmt: skip
        else:
            job.scheduler(time, "mpirun detected that one or more processes exited with non-zero status, thus causing")
            job.scheduler(time, "the job to be terminated. The first process to do so was:")
            job.scheduler(time, f"  Process name: [[23456,1],{rank}]")
            job.scheduler(time, "  Exit code:    1")
        job.scheduler(time, "-" * 74)


def _silent(job: _Job, end: datetime) -> None:
    _watchdogs(job, end, {job.culprit})


def _lagging(job: _Job, end: datetime) -> None:
    """It is behind: what a rank prints that another one's time-out made speak."""
    before = len(job.lines)
    seq = _watchdogs(job, end, {job.culprit})
    rank, time = job.culprit, max(line.time for line in job.lines[before:] if line.rank is not None)
    _glog(job, rank, time, 1914, "Received a dump signal due to a collective timeout from  rank 0 and we will try our best "
        f"to dump the debug info. Last enqueued NCCL work: {seq - 1}, last completed NCCL work: {seq - 1}.This is most "
        "likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks")  # fmt: skip


def _raised(job: _Job, end: datetime) -> None:
    r, rank = job.r, job.culprit
    name, words = r.choice(_RAISED)
    rows = [
        "Traceback (most recent call last):",
        '  File "/work/train.py", line 212, in <module>',
        "    main()",
        f'  File "/work/data/shards.py", line {r.randrange(20, 400)}, in read',
        "    return self.get(item)",
        f"{name}: {words.format(n=r.randrange(100, 99999))}",
    ]
    for n, row in enumerate(rows):
        job.say(end + timedelta(microseconds=n), rank, f"[rank{rank}]: {row}")
    _ended(job, end + timedelta(seconds=3), rank, 1)
    if job.task_is_rank:
        host = job.hosts[job.node(rank)]
        job.scheduler(end + timedelta(seconds=3), f"srun: error: {host}: task {rank}: Exited with exit code 1")
    here = {n for n in range(job.ranks) if job.node(n) == job.node(rank)} if job.elastic else {rank}
    if here != {*range(job.ranks)}:
        _watchdogs(job, end, here)


def _killed(job: _Job, end: datetime) -> None:
    rank = job.culprit
    _ended(job, end + timedelta(seconds=3), rank, -9)
    if not job.elastic:
        _slurm_last(job, end + timedelta(seconds=3), {rank}, "Killed")
    if job.manner == "ray":
        node = job.node(rank)
        job.scheduler(end + timedelta(seconds=2), f"(raylet, ip=10.4.{node}.9) A worker died or was killed while executing a "
            f"task by an unexpected system error. RayTask ID: ffffffff01000000 Worker PID: {4000 + rank} Worker exit type: "
            "SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.")  # fmt: skip
    here = {n for n in range(job.ranks) if job.node(n) == job.node(rank)} if job.elastic else {rank}
    if here != {*range(job.ranks)} and job.manner != "mpirun":
        lines = len(job.lines)
        _watchdogs(job, end, here)
        if job.task_is_rank:  # those of the crowd stand above; that of the killed one came first
            assert len(job.lines) > lines


def _finish(job: _Job, end: datetime, step: int) -> None:
    words = job.r.choice(_ENDS)
    job.say(end, 0, words % step if "%" in words else words)


def _prefixed(job: _Job, line: _Line, *, single: bool) -> str:
    if line.whole:
        return line.text
    rank, node = line.rank, line.node
    match job.manner:
        case "slurm-nodes-labelled":
            return f"{node:>{len(str(job.nodes - 1))}}: {line.text}"
        case "slurm-ranks-labelled":
            return f"{rank:>{len(str(job.ranks - 1))}}: {line.text}"
        case "torchrun-tee" if rank is not None:
            return f"[default{rank % job.per_node}]:{line.text}"
        case "mpirun" if rank is not None:
            return f"[1,{rank}]<stderr>: {line.text}"
        case "pods":
            stamp = f"{line.time:%Y-%m-%dT%H:%M:%S.%f}123Z "
            return f"[pod/{job.hosts[node]}/pytorch] {line.text}" if single else f"{stamp}{line.text}"
        case "ray" if rank is not None:
            return f"(RayTrainWorker pid={4000 + rank}, ip=10.4.{node}.9) {line.text}"
    return line.text


def jobs(folder: Path, seed: int, count: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Planted]:
    """Jobs of all manners and faults in turn."""
    r = random.Random(seed)
    pairs = [(manner, fault) for manner in MANNERS for fault in FAULTS]
    for n in range(count):
        manner, fault = pairs[n % len(pairs)]
        yield make(folder / f"{n}", r.randrange(1 << 30), manner, fault, r.choice(sizes))
