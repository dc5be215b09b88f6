import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net)
optimizer = torch.optim.AdamW(model.parameters())
state = FSDP.optim_state_dict(model, optimizer)
also = FSDP.optim_state_dict(model, optimizer, optim_state_dict=optimizer.state_dict())
