import torch
from torch.distributed.fsdp import fully_shard

torch.save(model.state_dict(), "initial.pt")
fully_shard(model)
torch.save(teacher.state_dict(), "teacher.pt")
