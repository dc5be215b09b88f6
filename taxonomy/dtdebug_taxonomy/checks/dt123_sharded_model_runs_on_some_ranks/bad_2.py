import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(net, loader, held_out):
    rank = dist.get_rank()
    model = FSDP(net)
    for batch in loader:
        model(batch).sum().backward()
    if rank == 0:
        scores = [model(x).mean() for x in held_out]  # dt: DT123
        print(sum(scores))
