import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
model = DDP(net)
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "model.pt")
torch.save(optimizer.state_dict(), f"optimizer_rank{dist.get_rank()}.pt")
