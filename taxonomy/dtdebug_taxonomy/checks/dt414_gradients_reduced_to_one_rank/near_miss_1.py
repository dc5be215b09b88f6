import torch.distributed as dist

for p in model.parameters():
    dist.reduce(p.grad, dst=first_of_host, group=host)
