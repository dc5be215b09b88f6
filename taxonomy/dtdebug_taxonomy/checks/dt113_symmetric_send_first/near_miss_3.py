import torch
import torch.distributed as dist

from cluster import LOCAL_SIZE, RANK

is_source = (RANK // LOCAL_SIZE) % 2 == 0
peer = RANK + LOCAL_SIZE if is_source else RANK - LOCAL_SIZE


def warm_up(tensor):
    if is_source:
        dist.send(tensor, dst=peer)
    else:
        dist.recv(tensor, src=peer)


def measure(tensor, rounds):
    for _ in range(rounds):
        if is_source:
            dist.send(tensor, dst=peer)
        else:
            dist.recv(tensor, src=peer)
    for _ in range(rounds):
        if is_source:
            dist.send(tensor, dst=peer)
        else:
            dist.recv(tensor, src=peer)


warm_up(torch.zeros(1))
measure(torch.zeros(1 << 20), 10)
