import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
if rank < 4:
    group = dist.new_group([0, 1, 2, 3])  # dt: DT110
else:
    group = dist.new_group([4, 5, 6, 7])  # dt: DT110
