import torch.distributed as dist


def share(x, tp_group):
    dist.broadcast(x, src=dist.get_global_rank(tp_group, 0), group=tp_group)
    dist.broadcast(x, group_src=0, group=tp_group)
