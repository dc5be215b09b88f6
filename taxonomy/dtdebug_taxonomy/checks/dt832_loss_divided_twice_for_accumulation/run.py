"""The gradient of one micro-step of two, divided by hand as well and by Accelerate alone."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)


def gradient(by_hand):
    model = accelerator.prepare(torch.nn.Linear(1, 1, bias=False))
    accelerator.backward(model(torch.ones(1, 1)).sum() / by_hand)
    return next(model.parameters()).grad.item()


print("divided twice", gradient(2), "divided once", gradient(1), flush=True)
