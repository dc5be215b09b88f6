import horovod.torch as hvd
from torch.nn import Linear
from torch.optim import AdamW as Opt


class Trainer:
    def __init__(self):
        self.model = Linear(1, 1)
        self.opt = Opt(self.model.parameters())  # dt: DT802

    def step(self, x):
        self.model(x).backward()
        self.opt.step()


if __name__ == "__main__":
    hvd.init()
    Trainer().step(None)
