"""Rank 0 saves the checkpoint and then waits for the others, which never come."""
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def save(model, path):
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), path)
        dist.barrier()

def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(64, 64))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        model(torch.randn(8, 64)).sum().backward()
        opt.step(); opt.zero_grad()
        if step == 9:
            save(model, "last.pt")
    dist.barrier()
    dist.destroy_process_group()

main()
