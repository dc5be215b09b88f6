import torch.distributed as dist

dist.init_process_group("gloo")
rows = [None] * dist.get_world_size()
dist.all_gather_object(rows, 1)
