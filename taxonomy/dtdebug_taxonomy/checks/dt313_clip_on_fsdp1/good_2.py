import torch
from torch.distributed.fsdp import fully_shard

model = torch.nn.Linear(2, 2)
fully_shard(model)
model(torch.ones(2)).sum().backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
