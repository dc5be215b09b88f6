import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(torch.nn.Linear(2, 2).cuda())
copy = torch.nn.Linear(2, 2)
copy.load_state_dict(model.module.state_dict())
copy.cpu()
copy.cuda()
copy.half()
weights = {k: v.cpu() for k, v in model.state_dict().items()}
weights = {k: v.cuda() for k, v in weights.items()}
