import logging
import os

from torch.distributed import init_process_group
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

log = logging.getLogger("eval")


class Evaluator:
    def __init__(self, model, data):
        self.rank = int(os.environ["RANK"])
        self.val_sampler = DistributedSampler(data)
        self.loader = DataLoader(data, sampler=self.val_sampler)
        self.model = model

    def run(self):
        hits = [int(self.model(x) == y) for x, y in self.loader]
        top1 = sum(hits) / len(hits)
        if self.rank != 0:
            return
        log.info("top1 %.3f", top1)  # dt: DT408


if __name__ == "__main__":
    init_process_group("gloo")
    Evaluator(None, []).run()
