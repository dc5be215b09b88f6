import torch


def store(rank, state, path):
    if rank == 0:
        torch.save(state, path)


def resume(path):
    return torch.load(path)


def best(rank, state, old, new):
    if rank == 0:
        torch.save(state, new)
    return torch.load(old)
