import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def measure(files):
    total = torch.zeros(1)
    for file in files[dist.get_rank() :: dist.get_world_size()]:
        total += len(file)
    dist.all_reduce(total)


def evaluate(model, data):
    loader = DataLoader(data, sampler=DistributedSampler(data))
    for batch in loader:
        loss = model(batch).mean()
        dist.all_reduce(loss)


def checked(files):
    mine = files[dist.get_rank() :: dist.get_world_size()]
    if not mine:
        raise ValueError("more ranks than files")
    dist.barrier()
