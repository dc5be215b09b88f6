import torch.distributed as dist


def batch(size):
    return Loader(total_steps=size * dist.get_world_size())


class Loader:
    def __init__(self, total_steps):
        self.total_steps = total_steps
