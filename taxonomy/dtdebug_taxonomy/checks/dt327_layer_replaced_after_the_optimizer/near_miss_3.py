import torch
from torch import nn

net = pretrained()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
train(net, optimizer)
net.fc = nn.Linear(512, 10)
save(net)
