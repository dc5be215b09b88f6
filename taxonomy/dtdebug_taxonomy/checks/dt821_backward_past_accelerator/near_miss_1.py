import torch
from accelerate import Accelerator
from lightning.fabric import Fabric

fabric = Fabric()
accelerator = Accelerator()
model, data = accelerator.prepare(torch.nn.Linear(2, 1), [1])
x = torch.ones(2, requires_grad=True)
penalty = (x * 2).sum()
penalty.backward()
fabric.backward(model(x))
