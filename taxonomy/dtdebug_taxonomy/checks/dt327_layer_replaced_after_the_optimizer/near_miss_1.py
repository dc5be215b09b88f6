import torch
from torch import nn

net, teacher = pretrained(), pretrained()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
teacher.fc = nn.Linear(512, 10)
train(net, teacher, optimizer)
