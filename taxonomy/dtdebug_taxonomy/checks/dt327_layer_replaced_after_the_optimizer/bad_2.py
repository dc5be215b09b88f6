import torch.nn as nn
from torch.optim import AdamW


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = AdamW(self.model.parameters(), lr=1e-4)
        self.model.classifier.out = nn.Linear(768, 2)  # dt: DT327
        self.steps = len(self.optimizer.param_groups)
