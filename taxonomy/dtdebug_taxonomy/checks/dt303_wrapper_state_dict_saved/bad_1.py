import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
torch.save(ddp.state_dict(), "model.pt")  # dt: DT303
net = torch.nn.Linear(2, 2)
net.load_state_dict(torch.load("model.pt"))
