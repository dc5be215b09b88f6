import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, local_rank, accumulation):
    model = DDP(net, device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y) / accumulation
        loss.backward()
        if (i + 1) % accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
