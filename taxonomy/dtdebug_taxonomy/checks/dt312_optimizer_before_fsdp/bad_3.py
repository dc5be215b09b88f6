import torch.optim as optim
from torch.distributed.fsdp import FullyShardedDataParallel


class Trainer:
    def __init__(self, model, policy):
        self.model = model
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)  # dt: DT312
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 10)
        self.model = FullyShardedDataParallel(self.model, auto_wrap_policy=policy)
