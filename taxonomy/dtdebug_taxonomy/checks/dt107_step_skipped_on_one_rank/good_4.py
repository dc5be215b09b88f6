import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from networks import Discriminator, Generator, Portraits


class Gan:
    def __init__(self, local_rank):
        self.device = torch.device("cuda", local_rank)
        self.g = DDP(Generator().to(self.device), device_ids=[local_rank])
        self.d = DDP(Discriminator().to(self.device), device_ids=[local_rank])
        self.g_optimizer = torch.optim.Adam(self.g.parameters(), lr=2e-3)
        self.d_optimizer = torch.optim.Adam(self.d.parameters(), lr=2e-3)

    def d_step(self, real):
        fake = self.g(torch.randn(len(real), 512, device=self.device)).detach()
        loss = torch.nn.functional.softplus(self.d(fake)).mean() + torch.nn.functional.softplus(-self.d(real)).mean()
        bad = (~torch.isfinite(loss)).float()
        dist.all_reduce(bad)
        if bad.item() > 0:
            return None
        self.d_optimizer.zero_grad()
        loss.backward()
        self.d_optimizer.step()
        return loss.detach()

    def g_step(self, count):
        fake = self.g(torch.randn(count, 512, device=self.device))
        loss = torch.nn.functional.softplus(-self.d(fake)).mean()
        self.g_optimizer.zero_grad()
        loss.backward()
        self.g_optimizer.step()
        return loss.detach()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    gan = Gan(local_rank)
    data = Portraits("train")
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 16, sampler=sampler, drop_last=True)
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for real in loader:
            gan.d_step(real.to(gan.device))
            gan.g_step(len(real))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
