import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Tower(torch.nn.Module):
    def __init__(self, depth=2, width=8):
        super().__init__()
        self.shared = torch.nn.Linear(width, width)
        self.head = torch.nn.Linear(width, width)
        self.depth = depth

    def forward(self, x):
        for _ in range(self.depth):
            x = checkpoint(self.shared, x, use_reentrant=True)
        return self.head(x)


dist.init_process_group("gloo")
tower = DistributedDataParallel(Tower(), find_unused_parameters=True)
optimizer = torch.optim.AdamW(tower.parameters())
for epoch in range(2):
    x = torch.randn(4, 8, requires_grad=True)
    tower(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
