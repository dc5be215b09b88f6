import torch.distributed as dist


def share(x, tp_group):
    dist.broadcast(x, group_src=0, group=tp_group)  # dt: DT410
    return x
