import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
model = DDP(net)
for epoch in range(10):
    train(model)
    torch.save(model.module.state_dict(), "model.pt")  # dt: DT602
