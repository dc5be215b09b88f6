import datetime

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
model = torch.nn.Linear(4, 4)
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
if dist.get_rank() == 0:
    model(torch.ones(1, 4))
dist.broadcast_object_list([None], src=1)
