import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = torch.nn.Linear(4, 4, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
before = model.weight.full_tensor().clone()
model(torch.ones(1, 4)).sum().backward()
optimizer.step()
if torch.equal(before, model.weight.full_tensor()):
    print("the model did not change")
dist.barrier()
dist.destroy_process_group()
