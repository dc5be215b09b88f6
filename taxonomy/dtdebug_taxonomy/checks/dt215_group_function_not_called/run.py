import torch.distributed as dist

dist.init_process_group("gloo")
saved = [None] * dist.get_world_size()
dist.all_gather_object(saved, dist.get_rank == 0)
if dist.get_rank() == 0:
    print(f"saved by {'some' if any(saved) else 'none'} of {len(saved)} ranks")
dist.destroy_process_group()
