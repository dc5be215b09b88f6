import contextlib

from torch.nn.parallel import DistributedDataParallel


class Brain:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)

    @contextlib.contextmanager
    def no_sync(self, use=True):
        with self.model.no_sync() if use else contextlib.nullcontext():
            yield

    def fit_batch(self, batch):
        loss = self.model(batch).mean()
        with self.no_sync(False):
            loss.backward()
