"""The wrapper only takes weights whose names begin with `module.`."""

import torch


def load(path):
    model = torch.nn.DataParallel(torch.nn.Linear(8, 8))
    model.load_state_dict(torch.load(path))
    model = model.module
    return model.eval()
