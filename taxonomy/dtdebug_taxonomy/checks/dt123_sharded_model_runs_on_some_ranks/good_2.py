import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(net, loader, held_out):
    rank = dist.get_rank()
    if rank == 0:
        print(net(held_out[0]))
    model = FSDP(net)
    for batch in loader:
        model(batch).sum().backward()
    if rank == 0:
        print("done")
