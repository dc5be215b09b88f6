import torch


def bare(model):
    return model.module if isinstance(model, torch.nn.DataParallel) else model
