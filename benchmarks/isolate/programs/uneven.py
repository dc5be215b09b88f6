"""Files are dealt to ranks by hand; 11 files on 3 ranks give one rank fewer steps."""
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FILES = [f"part-{i:03}" for i in range(11)]

def read(name):
    g = torch.Generator().manual_seed(int(name[-3:]))
    for _ in range(3):
        yield torch.randn(6, 24, generator=g)

def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(24, 24))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for name in FILES[rank::world]:
        for x in read(name):
            opt.zero_grad(); model(x).square().mean().backward(); opt.step()
    total = torch.ones(1)
    dist.all_reduce(total)
    print("done", total.item())
    dist.destroy_process_group()

main()
