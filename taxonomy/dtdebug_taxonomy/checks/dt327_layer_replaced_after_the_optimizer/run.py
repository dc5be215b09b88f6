"""Two ranks train, but not the layer that was put in after the optimizer was made."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
net = nn.Sequential()
net.fc = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
net.fc = nn.Linear(4, 4)
model = DDP(net)
before = net.fc.bias.detach().clone()
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
print("the new layer did not change" if torch.equal(before, net.fc.bias) else "passed")
dist.destroy_process_group()
