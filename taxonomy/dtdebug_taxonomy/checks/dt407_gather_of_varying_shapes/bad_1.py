import torch
import torch.distributed as dist


def collect(scores):
    hits = scores[scores > 0.5]
    parts = [torch.zeros_like(hits) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, hits)  # dt: DT407
    return torch.cat(parts)
