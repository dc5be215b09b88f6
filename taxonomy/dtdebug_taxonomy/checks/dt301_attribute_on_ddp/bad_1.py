import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(torch.nn.Linear(2, 2))
z = model.encode(torch.ones(2))  # dt: DT301
print(model.config.hidden_size)  # dt: DT301
