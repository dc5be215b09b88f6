"""A thread that reports metrics holds a lock while loader workers are forked; they wait for it forever."""

import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

statistics_lock = threading.Lock()
statistics = {"read": 0}


def report():
    while True:
        with statistics_lock:
            time.sleep(0.5)
        time.sleep(0.0001)


class Rows(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        with statistics_lock:
            statistics["read"] += 1
        return torch.full((8,), float(index))


def main():
    dist.init_process_group("gloo")
    threading.Thread(target=report, daemon=True).start()
    time.sleep(0.1)
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for rows in DataLoader(Rows(), batch_size=4, num_workers=2):
        optimizer.zero_grad()
        model(rows).sum().backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
