import torch


def rotate(rank, state, step):
    path = f"step{step}.pt"
    if rank == 0:
        torch.save(state, path)
    path = f"step{step - 1000}.pt"
    return torch.load(path)
