import torch.distributed as dist


def main(args):
    if args.distributed:
        dist.init_process_group("nccl")
    train()
    if args.distributed:
        dist.barrier()
