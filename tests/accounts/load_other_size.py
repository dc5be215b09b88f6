import io

import torch
from torch import nn


def make(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 2))


def save(model):
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return file


def resume(file, width=16):
    model = make(width)
    model.load_state_dict(torch.load(file))
    return model


trained = make(width=32)
print(resume(save(trained)))
