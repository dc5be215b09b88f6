"""Accelerate with two micro-steps of gradients 1 and 4, cleared before the backward pass and after the step."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)


def step(clear_first):
    model = torch.nn.Linear(1, 1, bias=False)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.0))
    for size in (1.0, 4.0):
        with accelerator.accumulate(model):
            if clear_first:
                optimizer.zero_grad()
            accelerator.backward(model(torch.tensor([[size]])).sum())
    return next(model.parameters()).grad.item()


print("cleared first", step(True), "cleared last", step(False), flush=True)
