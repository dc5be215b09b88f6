import torch.distributed as dist

rank, world_size = dist.get_rank(), dist.get_world_size()
files = sorted(open("files.txt").read().split())
own = files[rank::world_size]
for name in own:
    print(name)
