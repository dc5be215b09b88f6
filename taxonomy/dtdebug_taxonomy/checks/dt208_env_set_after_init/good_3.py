import os

import torch.distributed as dist


def setup(args):
    if args.launcher == "torchrun":
        dist.init_process_group("nccl")
    else:
        os.environ["MASTER_ADDR"] = args.host
        dist.init_process_group("nccl", rank=args.rank, world_size=args.size)
