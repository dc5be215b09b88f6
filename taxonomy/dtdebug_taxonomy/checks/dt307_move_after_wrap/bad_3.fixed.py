import torch
from torch.nn.parallel import DistributedDataParallel

from nets import Net


def main():
    model = DistributedDataParallel(Net().cuda())  # dt: DT307
    other = DistributedDataParallel(Net().cuda())
    other = other.half()  # dt: DT307
    other(torch.ones(1)).mean().backward()
    return model
