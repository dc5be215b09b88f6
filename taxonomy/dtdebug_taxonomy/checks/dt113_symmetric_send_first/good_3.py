import torch.distributed as dist


def exchange(x, y, rank):
    sent = dist.isend(x, 1 - rank)
    dist.recv(y, 1 - rank)
    sent.wait()


def stage(x, rank, size):
    if rank > 0:
        dist.recv(x, rank - 1)
    x = forward(x)
    if rank < size - 1:
        dist.send(x, rank + 1)
