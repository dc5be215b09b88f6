"""Averaging of gradients: one line, many buckets."""

from __future__ import annotations

import torch
import torch.distributed as dist

from training.mesh import Job


def synchronize(job: Job) -> None:
    """Averages the gradients in the way of the plan."""
    job.trouble.meet("gradients")
    buckets = _buckets(job)
    if job.plan.gradients == "sharded":
        _sharded(job, buckets)
    elif job.plan.gradients == "overlap":
        _overlapped(job, buckets)
    else:
        for bucket in buckets:
            dist.all_reduce(bucket, group=job.replicas)  # fault: all_reduce gradients


def _buckets(job: Job) -> list[torch.Tensor]:
    """The flat buckets; a parameter without a gradient leaves one out."""
    sizes = list(job.plan.buckets)
    some = job.plan.seed % len(sizes)
    if job.trouble.strikes("skip", "gradients"):
        del sizes[some]
    if job.trouble.strikes("extra", "gradients"):
        sizes.insert(some, 1 + sizes[some] // 2)
    if job.trouble.strikes("wrong_size", "gradients"):
        sizes[some] += 1 + sizes[some] // 3
    buckets = [torch.ones(size) for size in sizes]
    if job.trouble.strikes("wrong_dtype", "gradients"):
        buckets[some] = buckets[some].to((torch.float16, torch.float64, torch.int32)[job.plan.seed % 3])
    return buckets


def _overlapped(job: Job, buckets: list[torch.Tensor]) -> None:
    group = job.replicas
    pending = [dist.all_reduce(one, group=group, async_op=True) for one in buckets]  # fault: overlap gradients
    for work in pending:
        work.wait()


def _sharded(job: Job, buckets: list[torch.Tensor]) -> None:
    world = dist.get_world_size(job.replicas)
    for bucket in buckets:
        shard = torch.zeros(-(-len(bucket) // world), dtype=bucket.dtype)
        padded = torch.zeros(len(shard) * world, dtype=bucket.dtype)
        dist.reduce_scatter_tensor(shard, padded, group=job.replicas)  # fault: sharded gradients
        dist.all_gather_into_tensor(padded, shard, group=job.replicas)


def clip(job: Job) -> None:
    """Norm of all gradients, over the whole world."""
    norm = torch.ones(1)
    if job.trouble.strikes("replace", "clip"):
        dist.broadcast(norm, src=0)  # fault: replace clip
        return
    if job.trouble.strikes("skip", "clip"):
        return
    if job.trouble.strikes("wrong_dtype", "clip"):
        norm = norm.double()
    dist.all_reduce(norm)  # fault: skip clip, wrong_dtype clip
    if job.trouble.strikes("extra", "clip"):
        dist.all_reduce(norm)  # fault: extra clip
