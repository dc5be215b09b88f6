import os

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from mine import Data, Net

mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]) // 4, 4), mesh_dim_names=("dp", "tp"))
model = parallelize_module(Net(), mesh["tp"], {"up": ColwiseParallel()})
data = Data()
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))  # dt: DT524
for epoch in range(3):
    loader.sampler.set_epoch(epoch)
    for x in loader:
        model(x).sum().backward()
