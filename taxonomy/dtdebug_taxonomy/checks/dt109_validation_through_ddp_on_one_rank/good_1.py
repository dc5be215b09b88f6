import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
scores = model(images)
if dist.get_rank() == 0:
    print(model.module(images))
    print(model.state_dict())
