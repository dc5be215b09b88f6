from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def prepare(train, valid, model):
    return (
        DistributedDataParallel(model),
        DistributedSampler(train, rank=0),  # dt: DT525
        DistributedSampler(valid, rank=0, shuffle=False),
    )
