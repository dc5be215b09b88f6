import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def prepare(train, valid, model):
    return (
        DistributedDataParallel(model),
        DistributedSampler(train, rank=torch.distributed.get_rank()),  # dt: DT525
        DistributedSampler(valid, rank=torch.distributed.get_rank(), shuffle=False),
    )
