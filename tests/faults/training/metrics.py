"""What is logged, kept the same, and saved."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from training.mesh import Job


def average_loss(job: Job) -> None:
    """The mean loss over the replicas; with a pipeline only its last stage has one."""
    job.trouble.meet("loss")
    if "pp" in job.groups and job.stage == 0:
        return
    loss = torch.ones(())
    if job.trouble.strikes("replace", "loss"):
        dist.reduce(loss, dst=_first(job), group=job.replicas)  # fault: replace loss
        return
    if job.trouble.strikes("skip", "loss"):
        return
    dist.all_reduce(loss, group=job.replicas)  # fault: skip loss
    if job.trouble.strikes("extra", "loss"):
        dist.all_reduce(torch.ones(3), group=job.replicas)  # fault: extra loss


def share_buffers(job: Job) -> None:
    """Running statistics of the first rank for everybody."""
    running = torch.full((job.plan.hidden + 3,), float(job.rank))
    source = 0
    if job.trouble.strikes("skip", "buffers"):
        return
    if job.trouble.strikes("wrong_root", "buffers"):
        source = job.rank or dist.get_world_size() - 1
    if job.trouble.strikes("wrong_size", "buffers"):
        running = running[:-2].contiguous()
    if job.trouble.strikes("wrong_dtype", "buffers"):
        running = running.half()
    if job.trouble.strikes("replace", "buffers"):
        dist.all_reduce(running)  # fault: replace buffers
    else:
        dist.broadcast(running, src=source)  # fault: buffers
    if job.trouble.strikes("extra", "buffers"):
        dist.broadcast(running, src=source)  # fault: extra buffers


def log(job: Job) -> None:
    """Collects the metrics of all ranks, each so many steps."""
    job.trouble.meet("metrics")
    if job.trouble.strikes("skip", "metrics"):
        return
    values = torch.tensor([float(job.rank), float(job.step)])
    first = 0
    if job.trouble.strikes("wrong_root", "metrics"):
        first = 1
    if job.trouble.strikes("wrong_size", "metrics"):
        values = torch.cat([values, values])
    if job.plan.metrics == "gather":
        parts = [torch.empty_like(values) for _ in range(job.plan.world)] if job.rank == first else None
        dist.gather(values, parts, dst=first)  # fault: gather metrics
    elif job.plan.metrics == "reduce":
        dist.reduce(values, dst=first)  # fault: reduce metrics
    elif job.plan.metrics == "objects":
        dist.all_gather_object([None] * job.plan.world, {"rank": job.rank, "step": job.step})  # fault: objects metrics
    else:
        dist.all_gather([torch.empty_like(values) for _ in range(job.plan.world)], values)  # fault: all_gather metrics


def checkpoint(job: Job) -> None:
    """The first rank saves while the others wait."""
    if job.trouble.strikes("skip", "checkpoint"):
        return
    dist.barrier()  # fault: skip checkpoint
    if job.rank == 0:
        time.sleep(0.005)
        job.trouble.meet("checkpoint")
    if job.trouble.strikes("extra", "checkpoint"):
        dist.barrier()  # fault: extra checkpoint
    dist.barrier()


def _first(job: Job) -> int:
    return job.members["dp"][0] if "dp" in job.members else 0
