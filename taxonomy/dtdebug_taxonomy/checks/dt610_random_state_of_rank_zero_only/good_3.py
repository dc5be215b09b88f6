import torch
import torch.distributed as dist


def save(path):
    states = [None] * dist.get_world_size()
    dist.all_gather_object(states, torch.get_rng_state())
    if dist.get_rank() == 0:
        torch.save(states, path)


def load(path):
    torch.set_rng_state(torch.load(path)[dist.get_rank()])
