import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = DDP(torch.nn.Linear(4, 1))
files = ["a", "b", "c"]
files = files[: len(files) - len(files) % world_size]
for file in files[rank::world_size]:
    model(torch.load(file)).sum().backward()
