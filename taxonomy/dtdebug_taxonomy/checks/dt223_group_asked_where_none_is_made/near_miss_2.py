"""The condition only asks whether somebody has made the group already."""

import torch.distributed as dist


def main(args):
    if not dist.is_initialized():
        dist.init_process_group("nccl")
    dist.barrier()
