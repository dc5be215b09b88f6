import os

import torch
import torch.distributed as dist


def setup(args):
    per_node = torch.cuda.device_count()
    dist.init_process_group(
        "nccl", rank=int(os.environ["RANK"]), world_size=per_node * int(os.environ["SLURM_NNODES"])
    )
