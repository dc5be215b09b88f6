"""Another module trains."""

import torch
from helpers import train_one_epoch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(3):
    train_one_epoch(model, optimizer)
