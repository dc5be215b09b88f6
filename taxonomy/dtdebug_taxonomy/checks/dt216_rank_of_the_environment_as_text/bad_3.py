import os

from torch.nn.parallel import DistributedDataParallel


def wrap(model):
    rank = os.environ["LOCAL_RANK"]
    for other in range(os.environ["WORLD_SIZE"]):  # dt: DT216
        print(other)
    return DistributedDataParallel(model, device_ids=[rank])  # dt: DT216
