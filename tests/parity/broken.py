# Trainings in which something becomes NaN or infinite, each in another place.
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

case = sys.argv[1]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
strike = False


class Scaled(nn.Module):
    def forward(self, x):
        if case == "sqrt":
            return torch.sqrt(x)  # SQRT
        if case == "root_at_zero":
            x = x * (torch.arange(len(x)) != 6)[:, None] if strike else x
            return x.pow(2).sum(-1, keepdim=True).sqrt()  # ROOT
        return x


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(8, 8)

    def forward(self, x):
        scores = self.q(x) @ x.transpose(-1, -2)
        keep = torch.ones_like(scores, dtype=torch.bool).tril()
        if case == "masked" and strike:
            keep[3, 1] = False  # sample 3, row 1
        return torch.softmax(scores.masked_fill(~keep, float("-inf")), -1) @ x  # SOFTMAX


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.mid = Masked() if case in ("masked", "healthy") else Scaled()
        self.head = nn.Linear(1 if case == "root_at_zero" else 8, 4)

    def forward(self, x):
        x = self.body(x)
        if case == "half":
            x = (x.half() * (300 if strike else 10)).pow(2).float() * 1e-6  # HALF
        return self.head(self.mid(x if case != "sqrt" else x.abs() - (1 if strike else 0)))


net = Net()
ddp = DDP(net)
opt = torch.optim.SGD(ddp.parameters(), 1e3 if case == "rate" else 1e-3)
shape = (96, 5, 8) if case in ("masked", "healthy") else (96, 8)
own = torch.Generator().manual_seed(1)
x, y = torch.randn(*shape, generator=own), torch.randint(0, 4, (96,), generator=own)
if case == "input":
    x[37] = float("nan")
data = TensorDataset(x, y, torch.arange(96))
for step, (xs, ys, at) in enumerate(DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))):
    strike = rank == 1 and step == 3
    opt.zero_grad()
    out = ddp(xs)
    out = out.mean(1)[:, :4] if out.ndim == 3 else out
    if case == "log":
        p = torch.softmax(out, -1)
        if step == 2:
            p = p * (torch.arange(8) != 5)[:, None]
        loss = -torch.log(p.gather(1, ys[:, None])).mean()  # LOG
    elif case == "ignored":
        loss = F.cross_entropy(out, torch.full_like(ys, -100) if rank == 0 and step == 1 else ys)  # IGNORED
    elif case == "rate":
        loss = out.pow(4).mean()
    else:
        loss = F.cross_entropy(out, ys)
    loss.backward()
    opt.step()
print(f"{sum(p.double().nan_to_num().sum().item() for p in net.parameters()):.17g}")
dist.destroy_process_group()
