import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(torch.nn.Linear(2, 1))
x = torch.ones(1, 2).to(accelerator.device)
