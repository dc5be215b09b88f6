import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net, device_id=torch.cuda.current_device())
train(model)
state_dict = model.state_dict()
if dist.get_rank() == 0:
    torch.save(state_dict, "model.pt")  # dt: DT105
