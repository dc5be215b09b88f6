import os

from torch.nn.parallel import DistributedDataParallel


def prepare(model):
    rank = int(os.environ["RANK"])
    if rank > 0:
        return model
    return DistributedDataParallel(model.cuda())  # dt: DT308
