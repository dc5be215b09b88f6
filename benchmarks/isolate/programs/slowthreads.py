"""Each rank takes eight threads for its operations, on fewer cores than that."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(8)
    model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(6)]))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(100000):
        x = torch.randn(256, 128)
        for _ in range(4):
            x = (x.softmax(0) + x.sigmoid()).cumsum(1).tanh()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()


main()
