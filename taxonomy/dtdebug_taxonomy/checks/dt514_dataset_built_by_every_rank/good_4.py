import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torchvision import datasets, transforms


def each_rank(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    if rank == 0:
        datasets.MNIST("data", train=True, download=True)
    dist.barrier()
    data = datasets.MNIST("data", train=True, transform=transforms.ToTensor())
    print(len(data))


if __name__ == "__main__":
    datasets.FashionMNIST("data", train=True, download=True)
    mp.spawn(each_rank, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
