import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model, rank, world_size):
    outputs = model.module(torch.randn(3, 4)).detach()
    if rank == 0:
        gathered = [torch.zeros_like(outputs) for _ in range(world_size)]
        dist.all_gather(gathered, outputs)
        stacked = torch.cat(gathered)
        print("eval", stacked.mean().item())


def main():
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(2, 4)).sum().backward()
            opt.step()
        evaluate(model, rank, world_size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
