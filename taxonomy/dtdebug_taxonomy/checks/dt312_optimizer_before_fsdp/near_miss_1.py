import torch
from torch.distributed.fsdp import fully_shard

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print(sum(len(g["params"]) for g in optimizer.param_groups))
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
