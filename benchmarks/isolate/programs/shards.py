"""Each rank trains on its own shard; the shards are not equally long."""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
everything = TensorDataset(torch.randn(20, 4), torch.randn(20, 1))
bounds = [0, 12, 20] if world == 2 else [0, 20]
mine = Subset(everything, range(bounds[rank], bounds[rank + 1]))
net = DDP(torch.nn.Linear(4, 1))
for epoch in range(2):
    for x, y in DataLoader(mine, batch_size=4):
        (net(x) - y).square().mean().backward()
dist.barrier()
dist.destroy_process_group()
