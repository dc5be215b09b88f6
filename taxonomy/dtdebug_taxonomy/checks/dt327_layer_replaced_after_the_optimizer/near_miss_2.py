import torch
from torch import nn

net = pretrained()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.fc = nn.Linear(512, 10)
optimizer.add_param_group({"params": net.fc.parameters()})
train(net, optimizer)
