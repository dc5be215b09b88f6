import deepspeed
import torch

with deepspeed.zero.Init():
    model = Net()
    torch.nn.init.normal_(model.head.weight)
other = torch.nn.Linear(2, 2)
torch.nn.init.normal_(other.weight)
