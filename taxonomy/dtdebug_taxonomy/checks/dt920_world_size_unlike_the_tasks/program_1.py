import os

import torch.distributed as dist

dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["WORLD_SIZE"]))
