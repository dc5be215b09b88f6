import torch
import torch.distributed as dist


def gather_metric(value):
    outputs = [torch.zeros_like(value) for _ in range(dist.get_world_size())]
    dist.all_gather(outputs, value)
    return torch.stack(outputs).mean()
