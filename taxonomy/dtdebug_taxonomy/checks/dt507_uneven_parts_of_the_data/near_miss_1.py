import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = DDP(torch.nn.Linear(4, 1))
for x in torch.randn(8, 4)[: 8 // world_size]:
    model(x).backward()
test_files = ["x", "y", "z"]
for file in test_files[rank::world_size]:
    print(model.module(torch.load(file)))
