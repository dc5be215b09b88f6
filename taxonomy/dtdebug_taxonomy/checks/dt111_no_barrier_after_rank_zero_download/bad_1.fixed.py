import torch.distributed as dist
from torchvision import datasets

dist.init_process_group("nccl")
if dist.get_rank() == 0:
    datasets.MNIST("data", train=True, download=True)  # dt: DT111
dist.barrier()
train_set = datasets.MNIST("data", train=True, transform=transform)
