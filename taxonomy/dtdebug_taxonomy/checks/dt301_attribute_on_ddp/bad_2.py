import torch
import torch.nn as nn


def wrap(model, local_rank):
    return nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[local_rank])


class Trainer:
    def __init__(self, model, local_rank):
        self.model = model
        self.model = wrap(self.model, local_rank)

    @torch.no_grad()
    def evaluate(self, batches):
        for batch in batches:
            print(self.model.generate(batch, max_new_tokens=8))  # dt: DT301

    def layers(self):
        return [m for m in self.model.layers]  # dt: DT301
