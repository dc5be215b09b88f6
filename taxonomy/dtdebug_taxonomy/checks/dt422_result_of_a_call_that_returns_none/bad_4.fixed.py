import torch.distributed as dist


def accuracy(correct, count):
    dist.all_reduce(correct)
    total = correct  # dt: DT422
    return total.item() / count
