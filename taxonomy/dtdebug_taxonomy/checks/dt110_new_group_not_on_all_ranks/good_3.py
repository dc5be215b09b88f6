import torch.distributed as dist

rank = dist.get_rank()
node = rank // 8
group = dist.new_group([node * 8 + i for i in range(8)], use_local_synchronization=True)
if rank == 0:
    everyone = dist.new_group()
else:
    everyone = dist.new_group()
