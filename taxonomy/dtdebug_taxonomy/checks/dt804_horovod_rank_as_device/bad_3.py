import os

import torch
from horovod import torch as hvt


class Trainer:
    def __init__(self, model):
        self.rank = hvt.rank()
        self.device = torch.device("cuda", self.rank)  # dt: DT804
        self.model = model.to(f"cuda:{hvt.rank()}")  # dt: DT804

    def prepare(self, batch):
        rank = hvt.rank()
        os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)  # dt: DT804
        return batch.cuda(rank)  # dt: DT804
