import contextlib

from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net, optimizer, local_rank):
        self.model = DistributedDataParallel(net, device_ids=[local_rank])
        self.optimizer = optimizer

    def back(self, loss, last):
        with contextlib.nullcontext() if last else self.model.no_sync():  # dt: DT314
            loss.backward()

    def epoch(self, loader, every):
        for i, (x, y) in enumerate(loader, 1):
            loss = (self.model(x) - y).square().mean()
            self.back(loss / every, i % every == 0)
            if i % every == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
