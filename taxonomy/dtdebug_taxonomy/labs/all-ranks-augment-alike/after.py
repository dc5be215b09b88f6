"""Adds noise to each sample."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Noisy(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        return torch.full((4,), i / 96) + 0.1 * torch.randn(4)


def train() -> None:
    torch.manual_seed(0)  # the same weights on all ranks
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    torch.manual_seed(1000 + dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sampler = DistributedSampler(Noisy())
    loader = DataLoader(Noisy(), batch_size=8, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
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
