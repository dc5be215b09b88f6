"""Four rounds with gradient_accumulation_steps=4, none of them in accumulate()."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
model = torch.nn.Linear(1, 1, bias=False)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=1.0))
steps = 0
for _ in range(4):
    before = next(model.parameters()).item()
    optimizer.zero_grad()
    accelerator.backward(model(torch.ones(1, 1)).sum())
    optimizer.step()
    steps += before != next(model.parameters()).item()
print("steps", steps, "gradient", next(model.parameters()).grad.item(), flush=True)
