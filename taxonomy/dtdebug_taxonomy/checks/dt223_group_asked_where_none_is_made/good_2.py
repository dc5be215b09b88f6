import torch.distributed as dist


def main(args):
    dist.init_process_group("nccl")
    train()
    dist.barrier()
