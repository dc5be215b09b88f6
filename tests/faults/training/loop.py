"""The training loop."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist

from training import data, gradients, layers, metrics, pipeline
from training.mesh import Job


def train(job: Job, steps: int) -> None:
    """All steps, then a last meeting of all ranks."""
    for step, batch in enumerate(data.batches(job, steps)):
        job.step = job.trouble.now = step
        if job.trouble.kind in ("running", "straggler") and step == job.trouble.step:
            job.trouble.note()
        train_step(job, step, batch)
        if job.trouble.strikes("return", "loop"):
            return  # fault: return
    if job.trouble.strikes("uneven", "exit"):
        sys.exit(0)  # fault: uneven exit
    job.trouble.strikes("uneven", "barrier")
    finish(job)


def train_step(job: Job, step: int, batch: torch.Tensor) -> None:
    """Forward, backward, optimizer, and what comes with them."""
    plan = job.plan
    early = job.trouble.strikes("swap", "experts")
    if early:
        dist.all_reduce(torch.ones(5))  # fault: swap experts
    hidden = layers.forward(job, batch)
    pipeline.exchange(job, hidden)
    if plan.loss:
        metrics.average_loss(job)
    if job.trouble.strikes("swap", "gradients"):
        dist.all_reduce(torch.ones(5))  # fault: swap gradients
        gradients.synchronize(job)
    else:
        gradients.synchronize(job)
        if not early:
            dist.all_reduce(torch.ones(5))
    if plan.clip:
        gradients.clip(job)
    if plan.buffers and step % plan.buffers == 0:
        metrics.share_buffers(job)
    if step % plan.log_every == 0:
        metrics.log(job)
    if step % plan.save_every == plan.save_every - 1:
        metrics.checkpoint(job)


def finish(job: Job) -> None:
    """All ranks meet before the last save."""
    dist.barrier()  # fault: uneven barrier
