import torch
from torch.nn.parallel import DistributedDataParallel as DDP

from nets import Net

net = Net()
net.to("cuda")
ddp = DDP(net).to("cuda")
batch = torch.ones(2).cuda().half()
ddp(batch.cpu().cuda()).sum().backward()
