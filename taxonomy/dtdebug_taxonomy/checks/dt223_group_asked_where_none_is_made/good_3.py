import torch.distributed as dist


def main(args):
    if args.world_size > 1:
        dist.init_process_group("nccl")
    rank = dist.get_rank() if dist.is_initialized() else 0
    train(rank)
