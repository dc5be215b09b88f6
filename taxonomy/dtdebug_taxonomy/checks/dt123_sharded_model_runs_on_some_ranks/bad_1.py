import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard


def sample(model):
    with torch.no_grad():
        return model(torch.zeros(1, 16)).argmax()


def train(model, loader, optimizer):
    fully_shard(model)
    for step, batch in enumerate(loader):
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0 and dist.get_rank() == 0:
            print(sample(model))  # dt: DT123
