import torch.distributed as dist
from torch.utils.data import DataLoader

from samplers import LengthSamplerV2
from setup import start


def loader(data, world_size: int, local_rank: int):
    return DataLoader(data, batch_sampler=LengthSamplerV2(data, num_replicas=world_size, rank=dist.get_rank()))  # dt: DT218


def main(data):
    local_rank, world_size, rank = start()
    print(rank)
    return loader(data, world_size, local_rank)
