import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

OPTIONS = dict(batch_size=4, shuffle=True, drop_last=True)


def loader_for(data, **options):
    sampler = DistributedSampler(data) if dist.get_world_size() > 1 else None
    return DataLoader(data, sampler=sampler, **options)


dist.init_process_group("gloo")
data = TensorDataset(torch.randn(16, 2))
loader = loader_for(data, **OPTIONS)
