import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
torch.manual_seed(0)
backbone, head = nn.Linear(4, 4), DDP(nn.Linear(4, 1))
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
torch.manual_seed(dist.get_rank())
for _ in range(3):
    optimizer.zero_grad()
    head(backbone(torch.randn(8, 4))).square().mean().backward()
    optimizer.step()
weights = [None] * dist.get_world_size()
dist.all_gather_object(weights, (backbone.weight.detach(), head.module.weight.detach()))
if dist.get_rank() == 0:
    (b0, h0), (b1, h1) = weights
    print(f"backbone {'is the same' if torch.equal(b0, b1) else 'differs'}, "
          f"head {'is the same' if torch.equal(h0, h1) else 'differs'}")
dist.destroy_process_group()
