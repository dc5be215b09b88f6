import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
criterion = torch.nn.MSELoss()
for x, y in []:
    loss = criterion(ddp(x), y)  # dt: DT302
    loss.backward()
