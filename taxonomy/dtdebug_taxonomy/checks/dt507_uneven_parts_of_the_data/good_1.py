import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = DDP(torch.nn.Linear(4, 1))
with Join([model]):
    for file in ["a", "b", "c"][rank::world_size]:
        model(torch.load(file)).sum().backward()
