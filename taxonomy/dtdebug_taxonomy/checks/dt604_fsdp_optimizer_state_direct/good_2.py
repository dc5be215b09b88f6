import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net)
optimizer = torch.optim.AdamW(model.parameters())
torch.save(optimizer.state_dict(), f"optimizer-{dist.get_rank()}.pt")
scheduler_state = scheduler.state_dict()
