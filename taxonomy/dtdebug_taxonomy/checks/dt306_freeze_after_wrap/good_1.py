from torch.nn.parallel import DistributedDataParallel as DDP

from nets import Net

net = Net()
for p in net.encoder.parameters():
    p.requires_grad = False
net.head.requires_grad_(False)
ddp = DDP(net)
for p in ddp.module.encoder.parameters():
    p.requires_grad = True
