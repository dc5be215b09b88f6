import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel


class Trainer:
    def __init__(self, net):
        self.rank = dist.get_rank()
        self.model = FullyShardedDataParallel(net)

    def validate(self, loader):
        if self.rank != 0:
            return
        for batch in loader:
            print(self.model(batch))  # dt: DT123
