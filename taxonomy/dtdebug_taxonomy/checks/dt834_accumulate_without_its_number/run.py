"""accumulate() of an Accelerator that was told no number of micro-steps."""

from types import SimpleNamespace

import torch
from accelerate import Accelerator

args = SimpleNamespace(gradient_accumulation_steps=4)
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(1, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
stepped = 0
for _ in range(args.gradient_accumulation_steps):
    with accelerator.accumulate(model):
        accelerator.backward(model(torch.ones(1, 1)).sum())
        optimizer.step()
        stepped += accelerator.sync_gradients
        optimizer.zero_grad()
print("micro-steps for each step:", args.gradient_accumulation_steps // stepped, flush=True)
