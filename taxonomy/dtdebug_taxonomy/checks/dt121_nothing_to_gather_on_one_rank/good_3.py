import torch.distributed as dist


def gather_all(tensors, group):
    if not tensors:
        return []
    parts = [None] * dist.get_world_size(group)
    dist.all_gather_object(parts, tensors, group=group)
    return parts
