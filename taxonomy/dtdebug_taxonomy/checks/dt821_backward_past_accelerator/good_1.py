import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(2, 1)
model = accelerator.prepare(model)
loss = model(torch.ones(1, 2)).mean()
accelerator.backward(loss)
