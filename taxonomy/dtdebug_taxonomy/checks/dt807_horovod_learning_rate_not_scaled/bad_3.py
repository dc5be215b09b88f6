import horovod.torch as hvd
from torch import nn, optim

LR = 1e-3


class Trainer:
    def __init__(self):
        self.model = nn.Linear(1, 1)
        base = optim.AdamW(self.model.parameters(), LR)  # dt: DT807
        self.opt = hvd.DistributedOptimizer(base, op=hvd.Average)
        print("ranks", hvd.size())


if __name__ == "__main__":
    hvd.init()
    Trainer()
