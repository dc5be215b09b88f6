import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

net = pretrained()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.fc = nn.Linear(512, 10)  # dt: DT327
model = DDP(net)
for x, y in loader:
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
