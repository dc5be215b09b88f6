"""An embedding whose weight is used a second time, as the output layer."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(8, 16, bias=False)
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)), reshard_after_forward=True)
hidden = model(torch.randn(4, 8))
logits = hidden @ model.weight
logits.square().mean().backward()
dist.barrier()
if dist.get_rank() == 0:
    print(f"the outputs are tied: {tuple(logits.shape)}", flush=True)
dist.destroy_process_group()
