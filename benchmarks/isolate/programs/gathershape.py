"""Predictions of all ranks are gathered; each rank has kept another number of boxes."""
import torch, torch.distributed as dist
from torch import nn

def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = nn.Linear(12, 5)
    torch.manual_seed(3)
    for batch in range(6):
        x = torch.randn(32 + rank, 12)
        boxes = net(x)
        kept = boxes[torch.arange(len(boxes)) % (rank + 2) == 0].detach()
        bins = [torch.empty_like(kept) for _ in range(world)]
        dist.all_gather(bins, kept)
        everything = torch.cat(bins)
        if rank == 0:
            print(batch, everything.mean().item())
    dist.destroy_process_group()

main()
