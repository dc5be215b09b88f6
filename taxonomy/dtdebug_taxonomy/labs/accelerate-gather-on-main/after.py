"""Trains with Accelerate and reports the mean loss of all processes."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True)
data = DataLoader(TensorDataset(torch.randn(32, 8)), batch_size=4)
model = torch.nn.Linear(8, 1)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), data)
losses = []
for (batch,) in data:
    loss = model(batch).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
mean = accelerator.gather(torch.stack(losses)).mean()
if accelerator.is_main_process:
    print(f"mean loss of all processes {mean:.3f}", flush=True)
accelerator.wait_for_everyone()
accelerator.end_training()
