import torch.distributed as dist


def accuracy(correct, count):
    total = dist.all_reduce(correct)  # dt: DT422
    return total.item() / count
