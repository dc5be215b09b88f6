import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2).cuda(0), device_ids=[0])
ddp.cpu()
print("builds an index")
ddp.cuda()  # dt: DT307
