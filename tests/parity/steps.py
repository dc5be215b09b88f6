# A small model that trains in one of several ways; each prints nothing of its fault.
import os
import sys
import zlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

way = sys.argv[1] if len(sys.argv) > 1 else ""
dist.init_process_group(
    "gloo",
    init_method=os.environ.get("STORE", "env://"),
    **({"rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])} if "STORE" in os.environ else {}),
)
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(32))
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.body(x))


net = Net()
ddp = DDP(net)
opt = torch.optim.AdamW(ddp.parameters(), lr=1e-3)
data = torch.Generator().manual_seed(100 + (0 if way == "same" else rank))
torch.manual_seed(50 + rank)
for step in range(6):
    opt.zero_grad()
    x = torch.randn(8, 16, generator=data)
    y = torch.randint(0, 4, (8,), generator=data)
    model = net if way == "past" and step == 1 else ddp  # PAST
    out = model(x)  # CALL
    loss = F.cross_entropy(out, y)
    if way == "divided":
        loss = loss / world_size  # DIVIDED
    if way == "scaled" and rank == 1:
        loss = loss * 1.02
    loss.backward()  # BACKWARD
    if way == "sum":
        for p in net.parameters():
            p.grad *= world_size
    opt.step()
held = b"".join(bytes(p.detach().reshape(-1).view(torch.uint8).tolist()) for p in net.parameters())
print(f"weights {zlib.crc32(held):08x}, next numbers {torch.rand(2).tolist()}")
dist.destroy_process_group()
