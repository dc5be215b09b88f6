import torch
import torch.distributed as dist
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(10, 10)
        self.table = nn.Parameter(torch.randn(10, 4))

    def scores(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            coded = self.encode(x)
        return torch.addmm(torch.zeros(4), coded, self.table)

    forward = scores


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = nn.parallel.DistributedDataParallel(Head())
    for _ in range(4):
        model(torch.randn(3, 10)).sum().backward()
    dist.destroy_process_group()


main()
