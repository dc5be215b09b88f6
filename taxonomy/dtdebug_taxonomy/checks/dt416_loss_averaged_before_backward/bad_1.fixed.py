import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DistributedDataParallel(torch.nn.Linear(8, 1).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8).cuda()).square().mean()
    local_loss, loss = loss, loss.detach().clone()
    dist.all_reduce(loss)  # dt: DT416
    loss = loss / dist.get_world_size()
    local_loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(step, loss.item())
dist.destroy_process_group()
