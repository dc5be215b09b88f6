import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net, device_id=torch.cuda.current_device())
train(model)
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "model.pt")  # dt: DT105
