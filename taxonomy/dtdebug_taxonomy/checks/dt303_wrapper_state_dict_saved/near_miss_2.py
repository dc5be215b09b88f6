import torch
from torch.nn.parallel import DistributedDataParallel as DDP

from states import fit_keys

net = torch.nn.Linear(2, 2)
if args.resume:
    state = fit_keys(torch.load(args.resume)["model"], net)
    net.load_state_dict(state)
ddp = DDP(net)
torch.save({"model": ddp.state_dict()}, "model.pt")
