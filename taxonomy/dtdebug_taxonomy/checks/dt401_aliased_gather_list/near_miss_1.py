import torch
import torch.distributed as dist

weights = [1.0] * dist.get_world_size()
padding = [torch.zeros(3)] * 4
batch = torch.stack(padding)
slots = [tensor for tensor in torch.zeros(dist.get_world_size(), 4, 3)]
dist.all_gather(slots, batch)
