import torch.distributed as dist


def average(value):
    dist.all_reduce(value)
    return value / dist.get_world_size()


def first_of_all(predictions):
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, predictions)
    return gathered[0]
