import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
batch_size = 256 // dist.get_world_size()
model = DDP(torch.nn.Linear(2, 2).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
