import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
with ddp.no_sync():
    loss = ddp(torch.ones(2)).sum()
    with torch.autocast("cuda", enabled=False):
        loss.backward()
with torch.autocast("cuda"):
    total = ddp(torch.ones(2)).sum()
with torch.autograd.set_detect_anomaly(True):
    total.backward()
