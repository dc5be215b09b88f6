import torch
from accelerate import Accelerator


def baseline(data):
    model = torch.nn.Linear(2, 1)
    for batch in data:
        model(batch).mean().backward()


def main(data):
    accelerator = Accelerator()
    model = accelerator.prepare(torch.nn.Linear(2, 1))
    for batch in data:
        accelerator.backward(model(batch).mean())
