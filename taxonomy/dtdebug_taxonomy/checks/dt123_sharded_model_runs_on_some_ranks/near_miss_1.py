import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(net, loader, held_out):
    model = FSDP(net)
    for batch in loader:
        model(batch).sum().backward()
    if dist.get_rank() == 0:
        inputs = held_out[0]
    else:
        inputs = held_out[1]
    print(model(inputs))
