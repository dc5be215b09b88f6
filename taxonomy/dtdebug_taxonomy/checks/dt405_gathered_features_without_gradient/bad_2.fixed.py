from torch.distributed import get_rank
import torch
from torch import nn
from torch.distributed import all_gather, get_world_size


class NTXentLoss(nn.Module):
    def gather(self, z):
        out = [torch.empty_like(z) for _ in range(get_world_size())]
        all_gather(out, z)  # dt: DT405
        out[get_rank()] = z
        return torch.cat(out, dim=0)

    def forward(self, z):
        everything = self.gather(z)
        sim = torch.mm(z, everything.T) / 0.07
        return nn.functional.cross_entropy(sim, torch.arange(z.shape[0]))
