import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = accelerator.prepare(torch.nn.Linear(2, 1))
probe = torch.nn.Linear(2, 1)
probe_loss = probe(torch.ones(1, 2)).mean()
probe_loss.backward()
