import torch.distributed as dist
from torchvision import datasets

if dist.get_rank() == 0:
    datasets.MNIST("data", download=True)
dist.barrier()
train_set = datasets.MNIST("data")
