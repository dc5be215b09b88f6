import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = DistributedDataParallel(torch.nn.Linear(8, 1).cuda())
data = torch.randn(1000, 8)
loader = DataLoader(data, sampler=DistributedSampler(data), batch_size=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x.cuda()).square().mean()
    wrong = torch.isnan(loss).float()
    dist.all_reduce(wrong)
    if wrong.item() > 0:
        break
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
