import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank):
    parts = [None] * torch.cuda.device_count()
    dist.all_gather_object(parts, rank)


if __name__ == "__main__":
    mp.spawn(run, nprocs=torch.cuda.device_count())
