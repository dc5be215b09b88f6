from os import environ

from torch.cuda import device_count
from torch.distributed import init_process_group


def setup():
    rank = int(environ["SLURM_PROCID"])
    world_size = device_count()
    init_process_group("nccl", "env://", world_size=world_size, rank=rank)  # dt: DT217
