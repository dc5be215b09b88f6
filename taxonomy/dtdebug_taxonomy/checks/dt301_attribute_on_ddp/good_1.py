import torch
from torch.nn.parallel import DistributedDataParallel as DDP

net = torch.nn.Linear(2, 2)
ddp = DDP(net)
net.encode(torch.ones(2))
ddp.module.encode(torch.ones(2))
ddp.require_backward_grad_sync = False
print(ddp.device_ids, ddp.training, ddp.find_unused_parameters)
with ddp.no_sync():
    ddp(torch.ones(2)).sum().backward()
