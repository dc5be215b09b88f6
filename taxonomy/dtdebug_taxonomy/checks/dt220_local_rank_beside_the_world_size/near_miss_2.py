import torch.distributed as dist


def start(mesh):
    rank = mesh["ep"].get_local_rank()
    world_size = dist.get_world_size()
    return rank, world_size
