import torch
from torch import nn

net = pretrained()
net.fc = nn.Linear(512, 10)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.step()
