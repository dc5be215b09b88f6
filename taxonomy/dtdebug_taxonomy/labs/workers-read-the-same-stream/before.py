"""Reads a stream by two workers."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, part, parts):
        self.part, self.parts = part, parts

    def __iter__(self):
        data = torch.randn(128, 4, generator=torch.Generator().manual_seed(0))
        yield from data[self.part :: self.parts]


def train() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Stream(dist.get_rank(), dist.get_world_size()), batch_size=8, num_workers=2)
    for x in loader:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
