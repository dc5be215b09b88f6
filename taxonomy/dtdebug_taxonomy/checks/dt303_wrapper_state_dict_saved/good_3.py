import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def save(net, path):
    net = DDP(net)
    state = {k.replace("module.", ""): v for k, v in net.state_dict().items()}
    torch.save(state, path)
