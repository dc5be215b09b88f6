import torch
import torch.distributed as dist
from torch.distributed.optim import ZeroRedundancyOptimizer


def save(optimizer: ZeroRedundancyOptimizer, path: str) -> None:
    optimizer.consolidate_state_dict(to=0)
    if dist.get_rank() == 0:
        torch.save(optimizer.state_dict(), path)
