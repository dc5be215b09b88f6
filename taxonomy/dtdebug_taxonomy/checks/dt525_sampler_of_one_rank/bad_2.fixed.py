import torch.distributed
import os

from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler


def prepare(data, model):
    world_size = int(os.environ["WORLD_SIZE"])
    sampler = DistributedSampler(data, world_size, torch.distributed.get_rank(), shuffle=True)  # dt: DT525
    return DDP(model), sampler
