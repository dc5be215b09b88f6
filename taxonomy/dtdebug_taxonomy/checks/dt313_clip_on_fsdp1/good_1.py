import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(torch.nn.Linear(2, 2).cuda())
model(torch.ones(2)).sum().backward()
model.clip_grad_norm_(1.0)
