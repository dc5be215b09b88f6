import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def one_batch(model, batch, world_size):
    loss = model(batch).loss
    if world_size > 1:
        loss = loss.unsqueeze(0)
        dist.reduce(loss, dst=0)  # dt: DT416
        loss = loss / world_size
        dist.broadcast(loss, src=0)
    return loss


def train(model, loader, optimizer, local_rank):
    world_size = dist.get_world_size()
    model = DistributedDataParallel(model, device_ids=[local_rank])
    for batch in loader:
        loss = one_batch(model, batch, world_size)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
