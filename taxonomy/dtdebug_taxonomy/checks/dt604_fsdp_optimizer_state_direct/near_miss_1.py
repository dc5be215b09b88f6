import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = FSDP(net)
head = torch.nn.Linear(8, 2)
head_optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
torch.save(head_optimizer.state_dict(), "head.pt")
raw = optimizer.state_dict()
