import torch.distributed as dist
from torch import nn


class BarlowTwinsLoss(nn.Module):
    def forward(self, z_a, z_b):
        c = self.bn(z_a).T @ self.bn(z_b)
        c = c / z_a.size(0)
        if dist.is_initialized():
            dist.all_reduce(c)  # dt: DT411
        return (c - self.eye).pow(2).sum()
