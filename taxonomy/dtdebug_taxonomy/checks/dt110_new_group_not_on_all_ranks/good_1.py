import torch.distributed as dist

dist.init_process_group("nccl")
low, high = dist.new_group([0, 1, 2, 3]), dist.new_group([4, 5, 6, 7])
group = low if dist.get_rank() < 4 else high
