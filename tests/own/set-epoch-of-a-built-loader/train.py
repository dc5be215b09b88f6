import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def build_loader(data, batch_size):
    return DataLoader(data, batch_size=batch_size, sampler=DistributedSampler(data, shuffle=True))


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
    loader = build_loader(data, 4)
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
