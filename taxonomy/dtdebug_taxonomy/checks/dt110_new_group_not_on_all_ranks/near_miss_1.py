import torch.distributed as dist


def groups_of(members):
    cur_rank = []
    for member in members:
        cur_rank.append(member)
    return dist.new_group(cur_rank)


def local_group(world_size, ranks=None):
    if world_size > 1:
        return dist.new_group(ranks)
    return None
