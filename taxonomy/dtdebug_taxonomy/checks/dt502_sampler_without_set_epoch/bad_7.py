import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from corpus import Corpus
from net import Transformer


@dataclass
class Options:
    steps: int = 10000
    batch: int = 16
    lr: float = 3e-4
    log_every: int = 50


class Trainer:
    def __init__(self, options):
        self.options = options
        self.device = int(os.environ["LOCAL_RANK"])
        self.model = DDP(Transformer().to(self.device), device_ids=[self.device])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.lr)
        self.loader = self.make_loader(Corpus("train"))
        self.step = 0
        self.epoch = 0

    def make_loader(self, dataset):
        sampler = DistributedSampler(dataset, shuffle=True, drop_last=True)  # dt: DT502
        return DataLoader(dataset, batch_size=self.options.batch, sampler=sampler, num_workers=4, pin_memory=True)

    def batches(self):
        while True:
            yield from self.loader
            self.epoch += 1

    def train(self):
        stream = self.batches()
        while self.step < self.options.steps:
            tokens = next(stream).to(self.device)
            loss = self.model(tokens[:, :-1], tokens[:, 1:])
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
            if self.step % self.options.log_every == 0 and dist.get_rank() == 0:
                print(f"{self.step} {loss.item():.4f}")


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    Trainer(Options()).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
