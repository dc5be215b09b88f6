import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model):
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, parts):
        for part in parts:
            with self.model.no_sync():  # dt: DT315
                self.model(part).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
