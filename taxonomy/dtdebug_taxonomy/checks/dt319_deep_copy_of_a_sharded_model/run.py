import copy

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4)
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
copy.deepcopy(model)
