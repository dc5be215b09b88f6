import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(net, path, resume):
    net = DDP(net)
    if resume:
        net.load_state_dict(torch.load(path, map_location="cpu"))
    torch.save(net.state_dict(), path)
