"""Writes the files of a generated job, as launchers and collectors leave them."""

# ruff: noqa: E501, PLR0912 - lines of logs as they are printed; each fault has one signature

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from styles_job import PER_NODE, Job, Say, day


class Files:
    """Files of a job, in memory until everything is printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, list[tuple[float, str]]] = {}

    def put(self, name: str, say: Say, prefix: str = "") -> None:
        """Add one line, with its collector's prefix."""
        text = say.text if say.text.startswith("\r") and not prefix else say.text.lstrip("\r")
        self.rows.setdefault(name, []).append((say.time, "\n".join(f"{prefix}{row}" for row in text.split("\n"))))

    def write(self) -> None:
        """Write all lines, by time."""
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
    """Add a line to its node's file, as torchrun --tee under Slurm does."""
    host, local = _node_of(job, rank)
    out.put(f"pretrain_48213_{host}.out", say, f"[default{local}]:")


def _slurm_labels(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    out.put("slurm-48213.out", say, f"{rank:>{len(str(job.ranks - 1))}}: ")


def _rank_host(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    host, local = _node_of(job, rank)
    out.put(f"logs/{host}.local{local}.global_rank{rank}.log", say)


def _kubectl(job: Job, out: Files, rank: int, say: Say, attempt: int) -> None:
    """Add a line of a pod running torchrun to one common file, as `kubectl logs --prefix` does."""
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
    """Add a structured line to its node's file; lines that bypass the logger are wrapped by the collector."""
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
    """Write the job's logs."""
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
