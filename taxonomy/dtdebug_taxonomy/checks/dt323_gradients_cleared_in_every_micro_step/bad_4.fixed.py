import torch
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, local_rank, every, scaler=None):
    model = DistributedDataParallel(net, device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for step, (x, y) in enumerate(loader, 1):
        loss = (model(x) - y).square().mean() / every
        if scaler:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if step % every == 0:
            if scaler:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()
