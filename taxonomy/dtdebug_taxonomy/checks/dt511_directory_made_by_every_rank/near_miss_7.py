import os

import torch.distributed as dist

first = False
if args.local_rank != -1:
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    if rank == 0:
        first = True
else:
    first = True
if first and not os.path.exists(args.out):
    os.makedirs(args.out)
