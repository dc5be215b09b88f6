import os

from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler


def prepare(data, model):
    world_size = int(os.environ["WORLD_SIZE"])
    sampler = DistributedSampler(data, world_size, 0, shuffle=True)  # dt: DT525
    return DDP(model), sampler
