import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def prepare(model, args):
    if args.local_rank != -1 and dist.get_world_size() > 1:
        model = DDP(model)
    if args.rank == 0:
        print(model)
    return model
