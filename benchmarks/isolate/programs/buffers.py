import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Running(torch.nn.Module):
    """Keeps a history in a buffer, which a later forward pass needs as this rank left it."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("owner", torch.tensor(dist.get_rank()))

    def forward(self, x):
        if int(self.owner) != dist.get_rank():
            raise RuntimeError("the history is another rank's")
        return self.linear(x)


def main():
    dist.init_process_group("gloo")
    module = Running()
    net = DistributedDataParallel(module, init_sync=False)
    for _ in range(3):
        net(torch.randn(2, 3)).sum().backward()
    dist.destroy_process_group()


main()
