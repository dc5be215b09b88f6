"""Logs of jobs in which one thing goes wrong on one rank: layouts and styles of healthy lines as launchers leave them.

Each seed is another job. What is planted comes back beside the folder, for comparing with what was found.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

LAYOUTS = ("rank-files", "torchrun", "slurm-files", "srun-labels", "torch-prefix", "pods")
FAULTS = ("raises", "raises-quietly", "silent", "bus", "oom")
_RAISED = (
    ("ValueError", "shard /data/c4/part-{n}.bin is truncated", "shards.py", "decode"),
    ("KeyError", "'input_ids_{n}'", "collate.py", "pad_batch"),
    ("OSError", "[Errno 5] Input/output error: '/mnt/set/{n}.tar'", "dataset.py", "read_tar"),
    ("AssertionError", "sequence of {n} tokens", "packing.py", "pack"),
    ("json.decoder.JSONDecodeError", "Expecting value: line 1 column {n} (char {n})", "jsonl.py", "parse"),
    ("ZeroDivisionError", "division by zero", "metrics.py", "ratio"),
)
_STYLES = (
    "{t} | INFO | trainer | step {s} | loss {l:.4f} | lr {r:.3e} | {m:.1f} ms/step",
    "{t} - INFO - __main__ - epoch 1 iteration {s}/90000 loss={l:.5f} grad_norm={g:.3f} tokens/s={k}",
    "[{t}] iteration {s:8d}/ 500000 | consumed samples: {c} | elapsed time per iteration (ms): {m:.1f} | loss: {l:.6E}",
    "{t} INFO: batch {s} done in {m:.1f} ms, cache {h:016x} hit {k} of {c}",
)
_NOISE = (
    "{t} | DEBUG | loader | opened shard {h:x} of 4096 ({k} records)",
    "{t} | WARNING | loader | worker {w} slow: {m:.0f} ms for key {h:x}",
    "{t} | INFO | ckpt | saved /ckpt/step_{s}/shard_{w}.pt in {g:.2f} s",
)
_Lines = list[tuple[datetime, str]]


@dataclass
class Planted:
    """What is true of a job."""

    folder: Path
    ranks: int
    layout: str
    fault: str
    culprit: int
    host: str
    exception: str = ""
    code: str = ""
    silent: bool = False
    joinable: bool = False
    """The logs say which device and process the culprit has."""
    files: list[Path] = field(default_factory=list)


def make(folder: Path, seed: int, ranks: int, layout: str, fault: str, lines: int = 200) -> Planted:
    """Writes the logs of one job with so many healthy lines for each rank."""
    r = random.Random(seed)
    culprit = r.randrange(1, ranks)
    name = r.choice(("gpu", "node", "dgx-a", "worker-h"))
    host = [f"{name}-{n + 11:03d}" for n in range((ranks + 7) // 8)]
    start = datetime(2026, 3, 1 + seed % 27, r.randrange(24), r.randrange(60), tzinfo=UTC)
    at = lines - r.randrange(5, max(6, lines // 8))
    kind, n = r.choice(_RAISED), r.randrange(100, 99999)
    planted = Planted(folder, ranks, layout, fault, culprit, host[culprit // 8])
    planted.exception = kind[0].rpartition(".")[2] if fault.startswith("raises") else ""
    planted.silent = fault in ("silent", "oom")
    style, wait, seq = r.choice(_STYLES), r.choice((300, 600, 1800)), r.randrange(1000, 90000)
    rest = [rank for rank in range(ranks) if rank != culprit]
    quiet = set(r.sample(rest, len(rest) // 10)) if fault == "raises-quietly" else set()
    rows: list[_Lines] = []
    for rank in range(ranks):
        skew = timedelta(milliseconds=r.randrange(-900, 900))
        mine: _Lines = []
        if r.random() < 0.7:
            planted.joinable = planted.joinable or rank == culprit
            mine.append((start, _nccl(rank, ranks, host[rank // 8])))
        stop = at if rank == culprit else at + (1 if fault != "silent" else r.randrange(0, 2))
        for step in range(stop):
            when = start + timedelta(seconds=2 * step) + skew
            mine.append((when, _healthy(style if r.random() < 0.9 else r.choice(_NOISE), when, step, r)))
        moment = start + timedelta(seconds=2 * at) + skew
        if rank == culprit and fault.startswith("raises"):
            mine += [(moment, line) for line in _traceback(kind, n, r)]
        elif rank != culprit and rank not in quiet:
            end = moment + timedelta(seconds=wait)
            mine += [(end, line) for line in _watchdog(rank, seq, wait, end)]
        rows.append(mine)
    if fault in ("bus", "oom"):
        _machine(planted, folder, start + timedelta(seconds=2 * at), r)
    _write(planted, folder, rows, host)
    return planted


def _nccl(rank: int, ranks: int, host: str) -> str:
    device = rank % 8
    return (
        f"{host}:{4000 + rank}:{9000 + rank} [{device}] NCCL INFO comm 0x55{rank:08x} rank {rank} nranks {ranks} "
        f"cudaDev {device} nvmlDev {device} busId {0x18 + device * 0x11:x}000 commId 0x1 - Init COMPLETE"
    )


def _healthy(form: str, when: datetime, step: int, r: random.Random) -> str:
    return form.format(
        t=when.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3], s=step, l=3 + r.random(), r=r.random(), m=900 + 90 * r.random(),
        g=r.random(), k=r.randrange(9999), c=r.randrange(10**7), h=r.getrandbits(60), w=r.randrange(16),
    )  # fmt: skip


def _traceback(kind: tuple[str, str, str, str], n: int, r: random.Random) -> list[str]:
    name, words, file, function = kind
    line = r.randrange(20, 400)
    return [
        "Traceback (most recent call last):",
        '  File "/work/train.py", line 212, in <module>',
        "    main()",
        '  File "/work/train.py", line 188, in main',
        "    for batch in loader:",
        f'  File "/work/data/{file}", line {line}, in {function}',
        "    return self.get(item)",
        f"{name}: {words.format(n=n)}",
    ]


def _watchdog(rank: int, seq: int, wait: int, end: datetime) -> list[str]:
    glog = f"[E{end.month}{end.day:02d} {end.strftime('%H:%M:%S.%f')}000 ProcessGroupNCCL.cpp:616]"
    work = f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=16777216, NumelOut=16777216, Timeout(ms)={wait}000)"
    late = f"Watchdog caught collective operation timeout: {work} ran for {wait}0{rank % 90 + 10} milliseconds"
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    said = [
        f"{glog} [Rank {rank}] {late} before timing out.",
        f"{glog} {group} Exception (either an error or timeout) detected by watchdog at work: {seq}, last enqueued "
        f"NCCL work: {seq + 3}, last completed NCCL work: {seq - 1}.".replace("\n", ""),
    ]
    trace = [
        "Traceback (most recent call last):",
        '  File "/work/train.py", line 201, in main',
        "    loss.backward()",
        '  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward',
        "    torch.autograd.backward(",
        f"torch.distributed.DistBackendError: [Rank {rank}] {late} before timing out.",
    ]
    return [*(f"[rank{rank}]:{line}" for line in said), *(f"[rank{rank}]: {line}" for line in trace)]


def _machine(planted: Planted, folder: Path, moment: datetime, r: random.Random) -> None:
    stamp = moment - timedelta(seconds=r.randrange(1, 4))
    lead = r.choice((
        f"{stamp.isoformat()} {planted.host} kernel: ",
        f"{stamp.strftime('%b %e %H:%M:%S')} {planted.host} kernel: [81234.{r.randrange(10**6):06d}] ",
        f"[{stamp.strftime('%a %b %e %H:%M:%S %Y')}] ",
    ))  # fmt: skip
    pid = 4000 + planted.culprit
    if planted.fault == "bus":
        planted.code = "Xid 79"
        address = f"PCI:0000:{0x18 + planted.culprit % 8 * 0x11:02x}:00"
        what = f"NVRM: Xid ({address}): 79, pid={pid}, name=python, GPU has fallen off the bus."
    else:
        planted.code = "OOM killer"
        what = f"Memory cgroup out of memory: Killed process {pid} (python) total-vm:912345678kB, anon-rss:51234567kB"
    folder.mkdir(parents=True, exist_ok=True)
    healthy = [f"{lead}systemd[1]: Started session {n} of user root." for n in range(40)]
    (folder / f"dmesg-{planted.host}.log").write_text("\n".join([*healthy, lead + what, *healthy[:5]]) + "\n")


def _write(planted: Planted, folder: Path, rows: list[_Lines], host: list[str]) -> None:
    layout, width = planted.layout, len(str(planted.ranks - 1))

    def put(name: str, lines: list[str]) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        planted.files.append(path)

    def torch(rank: int, line: str) -> str:
        return line if line.startswith("[rank") else f"[rank{rank}]: {line}"

    def by_time(ranks: range) -> list[tuple[int, str]]:
        both = sorted((when, rank, n, line) for rank in ranks for n, (when, line) in enumerate(rows[rank]))
        return [(rank, line) for _, rank, _, line in both]

    if layout == "srun-labels":
        put("slurm-88123.out", [f"{rank:>{width}}: {line}" for rank, line in by_time(range(planted.ranks))])
    elif layout == "torch-prefix":
        put("slurm-88123.out", [torch(rank, line) for rank, line in by_time(range(planted.ranks))])
    elif layout == "pods":
        for pod in range(len(host)):
            ranks = range(pod * 8, min(pod * 8 + 8, planted.ranks))
            put(f"trainer-worker-{pod}.log", [torch(rank, line) for rank, line in by_time(ranks)])
    else:
        for rank, mine in enumerate(rows):
            name = {
                "rank-files": f"rank_{rank:04d}.log",
                "slurm-files": f"train-88123-{host[rank // 8]}-{rank}.out",
                "torchrun": f"{host[rank // 8]}/none_x1/attempt_0/{rank % 8}/stderr.log",
            }[layout]
            put(name, [torch(rank, line) if layout == "torchrun" else line for _, line in mine])
