import io

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
model = DDP(net)
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
save_here = dist.get_rank() == 0
if save_here:
    torch.save(model.state_dict(), "model.pt")


def unused(state, path):
    torch.save(state, path)


run(model)
