import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(net, probe, loader):
    model = FSDP(net)
    for batch in loader:
        model(batch).sum().backward()
    if dist.get_rank() == 0:
        print(probe(next(iter(loader))))
