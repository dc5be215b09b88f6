import torch
import torch.distributed as dist

from mine import Gather


def gather(features):
    if not features.requires_grad:
        parts = [torch.zeros_like(features) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, features)
        return torch.cat(parts)
    return Gather.apply(features)


def step(model, x, y):
    features = gather(model(x))
    loss = torch.nn.functional.cross_entropy(features @ features.T, y)
    loss.backward()
