import torch.distributed as dist

rank = dist.get_rank()
leaders = dist.new_group([0, 1])
if rank < 2:
    dist.barrier(group=leaders)
