"""Split a global batch over ranks and accumulation steps."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

GLOBAL_BATCH = 16
ACCUMULATE = 16


class Batches:
    """Sizes of the batches of one rank."""

    def __init__(self, total, accumulate):
        self.world = dist.get_world_size()
        self.accumulate = accumulate
        self.micro = total // (self.world * accumulate)

    def loader(self, data):
        return DataLoader(data, batch_size=self.micro, sampler=DistributedSampler(data))


def train(model, loader, accumulate):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for number, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y) / accumulate
        loss.backward()
        if (number + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(96, 5), torch.randn(96, 1))
    batches = Batches(GLOBAL_BATCH, ACCUMULATE)
    loader = batches.loader(data)
    model = DDP(nn.Linear(5, 1))
    loss = train(model, loader, batches.accumulate)
    if dist.get_rank() == 0:
        print("loss", loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
