import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, batches, local_rank, accumulation):
    model = DDP(net, device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for parts in batches:
        optimizer.zero_grad()
        for i in range(accumulation):
            (model(parts[i]) / accumulation).backward()
        optimizer.step()
