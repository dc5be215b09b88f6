"""The process groups of a job and what every part of it needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import torch.distributed as dist

from training.plan import Plan
from training.trouble import Trouble


@dataclass
class Job:
    """One rank of the job."""

    rank: int
    plan: Plan
    trouble: Trouble
    groups: dict[str, dist.ProcessGroup]
    members: dict[str, list[int]]
    step: int = 0

    @property
    def replicas(self) -> dist.ProcessGroup | None:
        """The group over which gradients are averaged: None is the world."""
        return self.groups.get("dp")

    @property
    def stage(self) -> int:
        """Pipeline stage of this rank."""
        return self.plan.stage(self.rank)


def build(rank: int, plan: Plan, trouble: Trouble, timeout: timedelta) -> Job:
    """Makes the groups, in the same order on all ranks."""
    job = Job(rank, plan, trouble, {}, {})
    for name, sets in plan.groups().items():
        for ranks in sets:
            group = dist.new_group(ranks, timeout=timeout, group_desc=name)
            if rank in ranks:
                job.groups[name], job.members[name] = group, ranks
    return job
