"""Trains with Accelerate, saves the weights, and loads them into a plain model."""

import tempfile
from pathlib import Path

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), 0.1))
for _ in range(3):
    accelerator.backward(net(torch.randn(4, 8)).square().mean())
    optimizer.step()
    optimizer.zero_grad()
if accelerator.is_main_process:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "weights.pt"
        torch.save(net.state_dict(), file)
        plain = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
        plain.load_state_dict(torch.load(file))
        print("the weights were loaded again", flush=True)
accelerator.wait_for_everyone()
accelerator.end_training()
