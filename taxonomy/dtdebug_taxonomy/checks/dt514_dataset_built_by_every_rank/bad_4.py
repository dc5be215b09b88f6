import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torchvision import datasets, transforms


def each_rank(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    data = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())  # dt: DT514
    print(len(data))


if __name__ == "__main__":
    mp.spawn(each_rank, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
