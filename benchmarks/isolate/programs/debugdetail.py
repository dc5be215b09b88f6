"""It runs well; only torch's own debug wrapper of the group ends it, by SIGSEGV, with TORCH_DISTRIBUTED_DEBUG=DETAIL."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        out = model(torch.randn(4, 5))
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 2:
            dist.all_reduce(out.detach().sum())
    dist.destroy_process_group()


main()
