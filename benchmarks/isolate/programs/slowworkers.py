"""Workers are started anew for each tiny epoch, and import the program each time."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(32, 16), torch.randn(32, 1))
    loader = DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="spawn")
    model = DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
