import copy

from torch.nn.parallel import DistributedDataParallel as DDP

from nets import Net

net = DDP(Net())
teacher = copy.deepcopy(net.module)
for p in teacher.parameters():
    p.requires_grad = False
teacher.encoder.requires_grad_(False)
other = Net()
other.encoder.requires_grad_(False)
