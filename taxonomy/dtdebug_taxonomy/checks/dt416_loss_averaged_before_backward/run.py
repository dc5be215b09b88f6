import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1))
largest = []
for averaged in (False, True):
    model.zero_grad()
    loss = model(torch.ones(4, 1)).mean()
    if averaged:
        dist.all_reduce(loss)
        loss = loss / dist.get_world_size()
    loss.backward()
    largest.append(model.module.weight.grad.item())
print(f"own loss {largest[0]} averaged loss {largest[1]}", flush=True)
dist.destroy_process_group()
