import torch
import torch.distributed as dist


def save_checkpoint(state, path):
    torch.save(state, path)


def main(args):
    dist.init_process_group("nccl")
    for epoch in range(args.epochs):
        if not args.multiprocessing_distributed or args.rank % args.ngpus == 0:
            save_checkpoint({"epoch": epoch}, "checkpoint.pth.tar")


main(parse())
