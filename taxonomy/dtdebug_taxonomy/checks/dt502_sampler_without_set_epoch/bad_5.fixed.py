import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
from torch.utils.data.distributed import DistributedSampler

from mine import data, net


def train(index, epochs):
    sampler = DistributedSampler(data, num_replicas=xm.xrt_world_size(), rank=xm.get_ordinal())  # dt: DT502
    loader = torch.utils.data.DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in pl.MpDeviceLoader(loader, xm.xla_device()):
            net.step(x, y)
        print(epoch)
