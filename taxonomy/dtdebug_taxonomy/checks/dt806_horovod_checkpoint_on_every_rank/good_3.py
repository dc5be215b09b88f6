import horovod.torch as hvd
import torch


def save(model):
    torch.save(model.state_dict(), "model.pt")


hvd.init()
verbose = hvd.rank() == 0
net = torch.nn.Linear(2, 1)
if verbose:
    save(net)
torch.save(net.state_dict(), f"shard-{hvd.rank()}.pt")
