import torch
import torch.distributed as dist


def gather_metric(value):
    world_size = dist.get_world_size()
    outputs = [torch.zeros_like(value) for _ in range(world_size)]  # dt: DT401
    dist.all_gather(outputs, value)
    return torch.stack(outputs).mean()
