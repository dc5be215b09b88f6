import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def distill(student, teacher, loader):
    student, teacher = DDP(student), teacher
    ema = DDP(torch.nn.Linear(2, 2))
    for x in loader:
        with torch.no_grad():
            target = ema.module(x)
        loss = (student(x) - target).pow(2).mean()
        loss.backward()


@torch.no_grad()
def evaluate(model, loader):
    model = DDP(model)
    return [model.module(x) for x in loader]
