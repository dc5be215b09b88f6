"""One cycle of the learning rate over all epochs."""
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class Config:
    epochs: int = 4
    batch_size: int = 8
    max_lr: float = 0.1
    samples: int = 64


def make_scheduler(opt, loader, cfg):
    steps = len(loader) * cfg.epochs // dist.get_world_size()
    return OneCycleLR(opt, max_lr=cfg.max_lr, total_steps=steps)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    data = TensorDataset(torch.randn(cfg.samples, 4), torch.randn(cfg.samples, 1))
    loader = DataLoader(data, cfg.batch_size, sampler=DistributedSampler(data))
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    scheduler = make_scheduler(opt, loader, cfg)
    for epoch in range(cfg.epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
            scheduler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
