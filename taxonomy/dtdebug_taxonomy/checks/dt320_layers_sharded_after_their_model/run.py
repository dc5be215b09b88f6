import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
fully_shard(model, mesh=mesh)
for layer in model:
    fully_shard(layer, mesh=mesh)
model(torch.ones(1, 4)).sum().backward()
