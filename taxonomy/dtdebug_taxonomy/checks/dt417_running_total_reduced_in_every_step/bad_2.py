import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.correct = torch.zeros(1)

    def run(self, model, loader):
        for x, y in loader:
            self.correct += (model(x).argmax(1) == y).sum()
            dist.all_reduce(self.correct, op=dist.ReduceOp.SUM)  # dt: DT417
            print(self.correct.item())
