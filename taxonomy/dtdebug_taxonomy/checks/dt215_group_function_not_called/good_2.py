import torch.distributed as dist


def rank_of(group, ask=None):
    ask = ask or dist.get_rank
    return ask(group)


def is_patched(original):
    return dist.get_rank is not original
