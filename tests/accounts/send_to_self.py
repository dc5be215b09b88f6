import torch
import torch.distributed as dist


def neighbour(step):
    return (dist.get_rank() + step) % dist.get_world_size()


def pass_on(x, hops):
    target = neighbour(hops)
    dist.send(x, dst=target)


dist.init_process_group("gloo")
HOPS = 2
pass_on(torch.ones(2), HOPS)
