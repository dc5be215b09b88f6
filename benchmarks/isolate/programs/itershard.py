"""A stream that each loader worker reads whole: an epoch has more steps than the schedule was made for."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

LINES, BATCH, EPOCHS = 32, 4, 2


class Lines(IterableDataset):
    def __iter__(self):
        rank, world = dist.get_rank() if dist.is_initialized() else 0, 1
        if dist.is_initialized():
            world = dist.get_world_size()
        for number in range(rank, LINES, world):
            yield torch.full((6,), float(number % 7))


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = LINES // dist.get_world_size() // BATCH * EPOCHS
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
    loader = DataLoader(Lines(), batch_size=BATCH, num_workers=2)
    for epoch in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            schedule.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
