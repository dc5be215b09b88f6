import torch
from torch.nn.parallel import DistributedDataParallel as DDP

net = DDP(torch.nn.Linear(2, 2))
generator = torch.optim.SGD(net.parameters(), lr=0.1)
for i, x in enumerate([]):
    if i % 5 == 0:
        net(x).sum().backward()
        generator.step()
