import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(device):
    model = torch.nn.Linear(2, 2).double().cuda()
    model = DDP(model)
    model.to(device)
    model(torch.ones(2)).sum().backward()
    torch.save(model.cpu().state_dict(), "m.pt")
