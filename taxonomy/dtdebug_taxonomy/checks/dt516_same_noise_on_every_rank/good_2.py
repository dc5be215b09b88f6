import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
torch.manual_seed(1234 + dist.get_rank())
model = DDP(net)
for x in loader:
    noise = torch.randn_like(x)
    loss = model(x + noise).mean()
    loss.backward()
