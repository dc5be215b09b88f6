"""The numbers come from a generator of the rank's own."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
torch.manual_seed(0)
own = torch.Generator().manual_seed(dist.get_rank())
model = DDP(net)
for x in loader:
    noise = torch.randn(x.shape, generator=own)
    loss = model(x + noise).mean()
    loss.backward()
