import torch
import torch.distributed as dist

n_gpus = torch.cuda.device_count()
rows = [torch.empty(4) for _ in range(dist.get_world_size())]  # dt: DT409
dist.all_gather(rows, mine)
