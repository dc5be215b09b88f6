import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler

accelerator = Accelerator(cpu=True)
data = torch.arange(8)
loader = accelerator.prepare(DataLoader(data, batch_size=1, sampler=DistributedSampler(data, shuffle=False)))
mine = [int(x) for x in loader]
parts = [None] * dist.get_world_size()
dist.all_gather_object(parts, mine)
if dist.get_rank() == 0:
    print("samples of both ranks:", len({n for part in parts for n in part}), "of 8", flush=True)
dist.destroy_process_group()
