"""Tensor-parallel layers and experts: collectives in the forward pass."""

from __future__ import annotations

import torch
import torch.distributed as dist

from training.mesh import Job


def forward(job: Job, batch: torch.Tensor) -> torch.Tensor:
    """One pass through all layers of this stage."""
    job.trouble.meet("forward")
    hidden = batch
    if "tp" in job.groups:
        if job.stage == 0:
            _share_batch(job, hidden)
        for layer in range(job.plan.layers):
            hidden = _row_parallel(job, hidden)
            if layer:
                hidden = _column_parallel(job, hidden)
    if "experts" in job.groups:
        hidden = _experts(job, hidden)
    return hidden


def _share_batch(job: Job, batch: torch.Tensor) -> None:
    dist.broadcast(batch, src=job.members["tp"][0], group=job.groups["tp"])


def _row_parallel(job: Job, hidden: torch.Tensor) -> torch.Tensor:
    partial = hidden * 0.5
    if job.trouble.strikes("skip", "forward"):
        return partial
    if job.trouble.strikes("wrong_size", "forward"):
        partial = partial[: len(partial) // 2].contiguous()
    if job.trouble.strikes("wrong_dtype", "forward"):
        partial = partial.double()
    if job.trouble.strikes("replace", "forward"):
        parts = [torch.empty_like(partial) for _ in job.members["tp"]]
        dist.all_gather(parts, partial, group=job.groups["tp"])  # fault: replace forward
        return torch.stack(parts).sum(0)
    dist.all_reduce(partial, group=job.groups["tp"])  # fault: skip forward, wrong_size forward, wrong_dtype forward
    if job.trouble.strikes("extra", "forward"):
        dist.all_reduce(partial.norm(), group=job.groups["tp"])  # fault: extra forward
    return partial if len(partial) == len(hidden) else hidden


def _column_parallel(job: Job, hidden: torch.Tensor) -> torch.Tensor:
    shards = [torch.empty_like(hidden) for _ in job.members["tp"]]
    if not job.trouble.strikes("skip", "gather"):
        dist.all_gather(shards, hidden, group=job.groups["tp"])  # fault: skip gather
    return shards[0]


def _experts(job: Job, hidden: torch.Tensor) -> torch.Tensor:
    group, members = job.groups["experts"], job.members["experts"]
    counts = torch.full((len(members),), float(job.rank))
    if job.trouble.strikes("replace", "experts"):
        dist.broadcast(counts, src=members[0], group=group)  # fault: replace experts
    elif not job.trouble.strikes("skip", "experts"):
        dist.all_reduce(counts, group=group)  # fault: skip experts
    if job.trouble.strikes("extra", "experts"):
        dist.barrier(group=group)  # fault: extra experts
    if job.trouble.strikes("wrong_size", "experts"):
        hidden = hidden[: len(hidden) // 2].contiguous()
    dist.broadcast(hidden, src=members[-1], group=group)  # fault: wrong_size experts
    return hidden
