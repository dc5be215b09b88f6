import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
train(model, optimizer)
state = optimizer.state_dict()  # dt: DT604
if dist.get_rank() == 0:
    torch.save(state, "optimizer.pt")
