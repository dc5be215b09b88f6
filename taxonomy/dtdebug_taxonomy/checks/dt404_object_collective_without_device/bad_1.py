import torch.distributed as dist

dist.init_process_group("nccl")
rows = [None] * dist.get_world_size()
dist.all_gather_object(rows, {"rank": dist.get_rank()})  # dt: DT404
print(rows)
