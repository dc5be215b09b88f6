import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

model = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)  # dt: DT312
model = FSDP(model)
for x in []:
    model(x).sum().backward()
    optimizer.step()
