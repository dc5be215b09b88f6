import os

from torch.nn.parallel import DistributedDataParallel


def wrap(model):
    rank = os.environ["LOCAL_RANK"]
    for other in range(int(os.environ["WORLD_SIZE"])):  # dt: DT216
        print(other)
    return DistributedDataParallel(model, device_ids=[int(rank)])  # dt: DT216
