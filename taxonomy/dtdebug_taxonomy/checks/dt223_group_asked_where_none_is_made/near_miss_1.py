"""One process leaves before the call."""

import torch.distributed as dist


def main(args):
    if args.distributed:
        dist.init_process_group("nccl")
    train()
    if not args.distributed:
        return
    dist.barrier()
