"""Point-to-point traffic: pipeline stages, or neighbours that exchange borders."""

from __future__ import annotations

import torch
import torch.distributed as dist

from training.mesh import Job


def exchange(job: Job, hidden: torch.Tensor) -> None:
    """Moves activations and gradients between the stages, or borders between neighbours."""
    if "pp" in job.groups:
        for _ in range(job.plan.micro_batches):
            (_first_stage if job.stage == 0 else _last_stage)(job, hidden)
    elif job.plan.exchange:
        _borders(job, hidden)


def _first_stage(job: Job, activations: torch.Tensor) -> None:
    following = job.members["pp"][1]
    gradient = torch.empty_like(activations)
    if job.trouble.strikes("cycle", "exchange"):
        dist.recv(gradient, src=following)  # fault: cycle exchange
    dist.send(activations, dst=following)
    dist.recv(gradient, src=following)


def _last_stage(job: Job, activations: torch.Tensor) -> None:
    previous = job.members["pp"][0]
    dist.recv(activations, src=previous)
    dist.send(activations, dst=previous)


def _borders(job: Job, hidden: torch.Tensor) -> None:
    border, other = hidden[:8].contiguous(), torch.empty(8)
    if job.rank % 2 == 0:
        if job.trouble.strikes("cycle", "exchange"):
            dist.recv(other, src=job.rank + 1)  # fault: cycle borders
        dist.send(border, dst=job.rank + 1)
        dist.recv(other, src=job.rank + 1)
    else:
        dist.recv(other, src=job.rank - 1)
        dist.send(border, dst=job.rank - 1)
