import torch.distributed as dist

everyone = dist.new_group(list(range(dist.get_world_size())))
gloo_group = dist.new_group(backend="gloo")


def share(x):
    dist.broadcast(x, src=0, group=everyone)
    dist.broadcast(x, 0, group=gloo_group)
