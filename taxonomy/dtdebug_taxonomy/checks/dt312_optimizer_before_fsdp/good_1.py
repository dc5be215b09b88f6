import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(torch.nn.Linear(2, 2).cuda())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
