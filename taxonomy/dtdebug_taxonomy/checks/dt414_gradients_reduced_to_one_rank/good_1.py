import torch.distributed as dist

for p in model.parameters():
    dist.all_reduce(p.grad)
    p.grad /= dist.get_world_size()
