import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(torch.nn.Linear(2, 2))
loss = model(torch.ones(2)).sum()
with model.no_sync():
    loss.backward()
