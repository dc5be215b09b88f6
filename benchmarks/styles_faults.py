"""Faults of a generated job, and the output of its ranks and launcher."""

# ruff: noqa: E501, ISC004, PLR0917 - lines of logs as they are printed; each fault has one signature

from __future__ import annotations

import random
from collections.abc import Callable

from styles_job import PER_NODE, RAISES, Job, Say, day, error_lines, logged_line, traceback


def _own(job: Job, at: float, r: random.Random, kind: tuple[str, str] | None = None) -> None:
    rank = job.culprit or 0
    name, words = kind or r.choice(RAISES)
    words = words.format(n=r.randrange(10**5, 10**6), d=r.randrange(9), g=rank % PER_NODE)
    job.exception, job.marker = name.rpartition(".")[2], words[:60]
    job.says[rank] += error_lines(job, rank, at + 1, name, words, r)


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
    """Return torchrun's output about a failed worker."""
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
"""Output of launchers other than torchrun about a failed rank."""


_PAGE = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


def _raises(job: Job, at: float, r: random.Random) -> None:
    _own(job, at, r)
    _report(job, job.host(job.culprit or 0), at + 6, job.culprit or 0, "exitcode  : 1", _PAGE)
    _watchdogs(job, at, r, r.choice((480, 600, 1800)))


def _raises_sigterm(job: Job, at: float, r: random.Random) -> None:
    """End all other ranks silently, as the launcher ends them at once."""
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
            job.says[rank] += error_lines(job, rank, at + 1.5 + r.random(), "RuntimeError", words, r)
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
    """Add a first attempt that failed elsewhere; the last one is the one to find."""
    before = (job.culprit or 0) + 1 if (job.culprit or 0) + 1 < job.ranks else 0
    earlier = [[say._replace(time=say.time - 2000) for say in rows] for rows in job.says]
    earlier = [[_again(job, rank, say, r) for say in rows] for rank, rows in enumerate(earlier)]
    earlier[before] += error_lines(
        job, before, at - 1990, "ConnectionResetError", "[Errno 104] Connection reset by peer", r
    )
    job.before = earlier
    _own(job, at, r)
    _watchdogs(job, at, r)


def _again(job: Job, rank: int, say: Say, r: random.Random) -> Say:
    return say if say.bare else logged_line(job, rank, say.time, f"warmup, shard {r.randrange(99)}")


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
        job.says[rank].append(logged_line(job, rank, at + 5, "training finished, closing"))
        job.says[rank].append(Say(at + 6, (
            f"[rank{rank}]:[W{day(at + 6, '%m%d %H:%M:%S.%f')}000 ProcessGroupNCCL.cpp:1496] Warning: WARNING: "
            "destroy_process_group() was not called before program exit, which can leak resources."
        ), err=True, bare=True))  # fmt: skip


def _fine(job: Job, at: float, r: random.Random) -> None:
    _goodbye(job, at, set(range(job.ranks)))


def _fine_one_quiet(job: Job, at: float, r: random.Random) -> None:
    """Let one rank print its first lines only, or everything that the others print except for the end."""
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
            logged_line(job, rank, when + 0.1, "reading failed, retrying in 5 s (attempt 1/3)", "WARNING")
        )
    _goodbye(job, at, set(range(job.ranks)))


def _fine_no_goodbye(job: Job, at: float, r: random.Random) -> None:
    """Let some hosts' last ranks end a little earlier, as evaluation is left to the others."""
    for rank in range(0, job.ranks, 2):
        job.says[rank].append(logged_line(job, rank, at + 200, "evaluation finished"))


FAULT: dict[str, Callable[[Job, float, random.Random], None]] = {
    "raises": _raises, "raises-sigterm": _raises_sigterm, "raises-gloo": _raises_gloo, "cuda-oom": _cuda_oom,
    "assert": _device_assert, "hang": _hang, "killed": _killed, "segfault": _segfault,
    "bus": _xid("Xid 79", "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
    "ecc": _xid("Xid 48", "pid={pid}, name=python3, An uncorrectable double bit error (DBE) has been detected on GPU."),
    "restart": _restart, "time-limit": _time_limit, "preempted": _preempted, "evicted": _evicted, "fine": _fine,
    "fine-one-quiet": _fine_one_quiet, "fine-zero-only": _fine_zero_only, "fine-retried": _fine_retried,
    "fine-no-goodbye": _fine_no_goodbye,
}  # fmt: skip
