import copy

from torch.distributed.fsdp import FullyShardedDataParallel


class Trainer:
    def __init__(self, net):
        self.model = FullyShardedDataParallel(net)
        self.ema = copy.deepcopy(self.model).eval()  # dt: DT319
