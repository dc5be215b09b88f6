import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(net, loader, optimizer):
    model = DDP(net)
    for batch in loader:
        loss = model(batch).mean()
        loss.backward()
        if dist.get_rank() == 0:
            if torch.isnan(loss):
                print("stopped: the loss is not a number")
                return  # dt: DT106
        optimizer.step()
