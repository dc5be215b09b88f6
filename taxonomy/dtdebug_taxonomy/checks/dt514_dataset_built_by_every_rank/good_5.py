import torch.distributed as dist
from torchvision import datasets


def main(rank):
    dist.init_process_group("nccl")
    if rank != 0:
        dist.barrier()
    data = datasets.CIFAR10("data", download=True)
    if rank == 0:
        dist.barrier()
    return data
