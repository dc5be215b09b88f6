import torch.distributed as dist
from accelerate import Accelerator

accelerator = Accelerator()
names = {"rank": dist.get_rank, "size": dist.get_world_size}
if accelerator.is_main_process and hasattr(dist, "get_rank"):
    print({name: ask() for name, ask in names.items()})
