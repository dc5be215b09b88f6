import torch.nn as nn


class Trainer:
    def __init__(self, model, rank):
        self.rank = rank
        self.model = nn.parallel.DistributedDataParallel(model)

    def validate(self, loader):
        if self.rank != 0:
            return None
        self.model.eval()
        return [self.model(batch) for batch in loader]  # dt: DT109
