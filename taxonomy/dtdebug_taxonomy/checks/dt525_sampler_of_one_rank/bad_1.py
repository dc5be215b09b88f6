import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
data = torch.randn(96, 4)
model = DistributedDataParallel(torch.nn.Linear(4, 4))
sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=0)  # dt: DT525
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x in loader:
        model(x).square().mean().backward()
dist.destroy_process_group()
