from torch.distributed.fsdp import FullyShardedDataParallel
from torch.optim import Adam as Optimizer

import torch


class Trainer:
    def __init__(self, model):
        self.model = FullyShardedDataParallel(model, use_orig_params=True)
        self.opt = Optimizer([p for p in self.model.parameters() if p.requires_grad])

    def save(self, rank):
        if rank == 0:
            torch.save({"opt": self.opt.state_dict()}, "last.pt")  # dt: DT604
