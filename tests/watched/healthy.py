# Dropout, batch norm, accumulation with no_sync, mixed precision, a schedule, an evaluation, workers, early stopping.
import contextlib
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Noisy(Dataset):
    def __len__(self):
        return 192

    def __getitem__(self, i):
        x = torch.full((8,), i / 192) + 0.1 * torch.randn(8)
        return x, torch.tensor(i % 3)


dist.init_process_group("gloo")
torch.manual_seed(3)
net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.2), nn.Linear(16, 3))
for p in net[1].parameters():
    p.requires_grad_(False)
model = DistributedDataParallel(net)
torch.manual_seed(3 + dist.get_rank())
data = Noisy()
sampler = DistributedSampler(data)
loader = DataLoader(data, 8, sampler=sampler, num_workers=2)
held_out = DataLoader(data, 32)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), 1e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
stop = torch.zeros(1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    model.train()
    for i, (x, y) in enumerate(loader):
        last = i % 2 == 1
        with contextlib.nullcontext() if last else model.no_sync():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x).float(), y) / 2
            loss.backward()
        if last:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        stop.fill_(float(epoch == 1 and i == 5 and dist.get_rank() == 0))
        dist.all_reduce(stop)
        if stop.item():
            break
    schedule.step()
    model.eval()
    if dist.get_rank() == 0:
        with torch.no_grad():
            [net(x) for x, _ in held_out]
    dist.barrier()
dist.destroy_process_group()
assert (
    "dtdebug.experiments.collectives.inside.dispatcher_hook" not in sys.modules
)  # no collective passes through Python for the watch
