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
    "[{t}] iteration {s:8d}/ 500000 | consumed samples: {c} | elapsed time per iteration (ms): {m:.1f} | lm loss: {l:.6E}",
    "{t} INFO: batch {s} done in {m:.1f} ms, cache {h:016x} hit {k} of {c}",
)
_NOISE = (
    "{t} | DEBUG | loader | opened shard {h:x} of 4096 ({k} records)",
    "{t} | WARNING | loader | worker {w} slow: {m:.0f} ms for key {h:x}",
    "{t} | INFO | ckpt | saved /ckpt/step_{s}/shard_{w}.pt in {g:.2f} s",
)


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
    files: list[Path] = field(default_factory=list)


def make(folder: Path, seed: int, ranks: int, layout: str, fault: str, lines: int = 200) -> Planted:
    """Writes the logs of one job with so many healthy lines for each rank."""
    r = random.Random(seed)
    culprit = r.randrange(1, ranks)
    name = r.choice(("gpu", "node", "dgx-a", "worker-h"))
    host = [f"{name}-{n + 11:03d}" for n in range((ranks + 7) // 8)]
    start = datetime(2026, 3, 1 + seed % 27, r.randrange(24), r.randrange(60), tzinfo=UTC)
    at = lines - r.randrange(5, max(6, lines // 8))
    kind = r.choice(_RAISED)
    n = r.randrange(100, 99999)
    planted = Planted(folder, ranks, layout, fault, culprit, host[culprit // 8])
    planted.exception = kind[0].rpartition(".")[2] if fault.startswith("raises") else ""
    planted.silent = fault in ("silent", "oom")
    style = r.choice(_STYLES)
    wait = r.choice((300, 600, 1800))
    rows: list[list[tuple[datetime, str]]] = []
    seq = r.randrange(1000, 90000)
    rest = [rank for rank in range(ranks) if rank != culprit]
    quiet = set(r.sample(rest, len(rest) // 10)) if fault == "raises-quietly" else set()
    for rank in range(ranks):
        skew = timedelta(milliseconds=r.randrange(-900, 900))
        mine: list[tuple[datetime, str]] = []
        if r.random() < 0.7:
            bus = f"{0x18 + rank % 8 * 0x11:x}000"
            mine.append((start, f"{host[rank // 8]}:{4000 + rank}:{9000 + rank} [{rank % 8}] NCCL INFO comm 0x55{rank:08x} "
                         f"rank {rank} nranks {ranks} cudaDev {rank % 8} nvmlDev {rank % 8} busId {bus} commId 0x1 - Init COMPLETE"))
        stop = at if rank == culprit else at + (1 if fault != "silent" else r.randrange(0, 2))
        for step in range(stop):
            when = start + timedelta(seconds=2 * step) + skew
            form = style if r.random() < 0.9 else r.choice(_NOISE)
            mine.append((when, form.format(
                t=when.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3], s=step, l=3 + r.random(), r=r.random(), m=900 + 90 * r.random(),
                g=r.random(), k=r.randrange(9999), c=r.randrange(10**7), h=r.getrandbits(60), w=r.randrange(16))))
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
    return [
        f"[rank{rank}]:{glog} [Rank {rank}] Watchdog caught collective operation timeout: {work} ran for {wait}0{rank % 90 + 10} "
        "milliseconds before timing out.",
        f"[rank{rank}]:{glog} [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an error or timeout) detected by "
        f"watchdog at work: {seq}, last enqueued NCCL work: {seq + 3}, last completed NCCL work: {seq - 1}.",
        f"[rank{rank}]: Traceback (most recent call last):",
        f'[rank{rank}]:   File "/work/train.py", line 201, in main',
        f"[rank{rank}]:     loss.backward()",
        f'[rank{rank}]:   File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward',
        f"[rank{rank}]:     torch.autograd.backward(",
        f"[rank{rank}]: torch.distributed.DistBackendError: [Rank {rank}] Watchdog caught collective operation timeout: {work} "
        f"ran for {wait}0{rank % 90 + 10} milliseconds before timing out.",
    ]


def _machine(planted: Planted, folder: Path, moment: datetime, r: random.Random) -> None:
    local = planted.culprit % 8
    stamp = moment - timedelta(seconds=r.randrange(1, 4))
    form = r.choice(("iso", "syslog", "dmesg"))
    lead = {
        "iso": f"{stamp.isoformat()} {planted.host} kernel: ",
        "syslog": f"{stamp.strftime('%b %e %H:%M:%S')} {planted.host} kernel: [81234.{r.randrange(10**6):06d}] ",
        "dmesg": f"[{stamp.strftime('%a %b %e %H:%M:%S %Y')}] ",
    }[form]
    if planted.fault == "bus":
        planted.code = "Xid 79"
        what = f"NVRM: Xid (PCI:0000:{0x18 + local * 0x11:02x}:00): 79, pid={4000 + planted.culprit}, name=python, GPU has fallen off the bus."
    else:
        planted.code = "OOM killer"
        what = f"Memory cgroup out of memory: Killed process {4000 + planted.culprit} (python) total-vm:912345678kB, anon-rss:51234567kB"
    folder.mkdir(parents=True, exist_ok=True)
    healthy = [f"{lead}systemd[1]: Started session {n} of user root." for n in range(40)]
    path = folder / f"dmesg-{planted.host}.log"
    path.write_text("\n".join([*healthy, lead + what, *healthy[:5]]) + "\n")


def _write(planted: Planted, folder: Path, rows: list[list[tuple[datetime, str]]], host: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    def put(name: str, lines: list[str]) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        planted.files.append(path)

    layout = planted.layout
    width = len(str(planted.ranks - 1))
    if layout in ("srun-labels", "torch-prefix"):
        both = sorted((when, rank, n, line) for rank, mine in enumerate(rows) for n, (when, line) in enumerate(mine))
        label = (lambda rank: f"{rank:>{width}}: ") if layout == "srun-labels" else (lambda rank: f"[rank{rank}]: ")
        put("slurm-88123.out", [(line if line.startswith("[rank") and layout == "torch-prefix" else label(rank) + line)
                                for _, rank, _, line in both])
        return
    if layout == "pods":
        for pod in range(len(host)):
            ranks = range(pod * 8, min(pod * 8 + 8, planted.ranks))
            both = sorted((when, rank, n, line) for rank in ranks for n, (when, line) in enumerate(rows[rank]))
            put(f"trainer-worker-{pod}.log", [line if line.startswith("[rank") else f"[rank{rank}]: {line}" for _, rank, _, line in both])
        return
    for rank, mine in enumerate(rows):
        lines = [line for _, line in mine]
        if layout == "rank-files":
            put(f"rank_{rank:04d}.log", lines)
        elif layout == "slurm-files":
            put(f"train-88123-{host[rank // 8]}-{rank}.out", lines)
        else:
            put(f"{host[rank // 8]}/none_x1/attempt_0/{rank % 8}/stderr.log",
                [line if line.startswith("[rank") else f"[rank{rank}]: {line}" for line in lines])
