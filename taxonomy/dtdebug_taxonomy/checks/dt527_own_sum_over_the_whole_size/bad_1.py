import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def run(rank, model, data, optimizer, criterion):
    model = DistributedDataParallel(model, device_ids=[rank])
    loader = DataLoader(data, batch_size=128, sampler=DistributedSampler(data))
    for epoch in range(10):
        total = 0
        for x, y in loader:
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        mean = total / len(loader.dataset)  # dt: DT527
        if rank == 0:
            print(epoch, mean)
