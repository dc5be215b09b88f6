import torch
from torch.nn.parallel import DistributedDataParallel as DDP


@master_only
def save(model):
    torch.save(model.state_dict(), "model.pt")


def train(model, should_save):
    model = DDP(model)
    save(model)
    if should_save:
        torch.save(model.state_dict(), "last.pt")


train(build(), is_first())
