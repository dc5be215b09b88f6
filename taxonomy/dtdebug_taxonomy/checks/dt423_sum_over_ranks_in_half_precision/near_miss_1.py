import torch.distributed as dist


def exchange(weight, world):
    gradient = weight.grad.half()
    gradient /= world
    dist.all_reduce(gradient)
    weight.grad = gradient.float()
