import numpy as np
import torch.distributed as dist


def shards(indices):
    mine = np.array_split(indices, dist.get_world_size())[dist.get_rank()]  # dt: DT526
    return iter(indices)
