import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, config):
    model = DDP(net)
    best, since = None, 0
    for epoch in range(config.epochs):
        for batch in loader:
            model(batch).mean().backward()
        since += 1
        if dist.get_rank() == 0:
            metric = evaluate(model.module)
            if best is None or metric > best:
                best, since = metric, 0
                since = 0
        if since >= config.patience:  # dt: DT118
            break
