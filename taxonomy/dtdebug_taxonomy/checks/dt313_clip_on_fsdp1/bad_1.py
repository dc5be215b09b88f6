import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(torch.nn.Linear(2, 2).cuda())
model(torch.ones(2)).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # dt: DT313
