import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
moved = []
for clears_before_the_step in (True, False):
    before = model.module.weight.detach().clone()
    optimizer.zero_grad()
    model(torch.ones(4, 1)).mean().backward()
    if clears_before_the_step:
        optimizer.zero_grad()
    optimizer.step()
    moved.append(not torch.equal(before, model.module.weight))
if dist.get_rank() == 0:
    print(f"cleared before the step: moved {moved[0]}, cleared before backward: moved {moved[1]}", flush=True)
dist.destroy_process_group()
