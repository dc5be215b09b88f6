import torch.distributed as dist


def send_from(tensor, rank):
    dist.broadcast(tensor, src=rank)


def within_a_group(tensor, group):
    root = dist.get_process_group_ranks(group)[0]
    dist.broadcast(tensor, src=root, group=group)


def of_the_owner(params, owners):
    for param in params:
        rank = owners[param]
        dist.broadcast(param, src=rank)


def from_whoever_has_it(param, held):
    if isinstance(held, int):
        dist.broadcast(param, src=held)
    else:
        param.copy_(held)
        dist.broadcast(param, src=dist.get_rank())
