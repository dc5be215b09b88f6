import torch.distributed as dist

dist.reduce(loss, dst=0)
if dist.get_rank() == 0:
    print(loss.item() / dist.get_world_size())
