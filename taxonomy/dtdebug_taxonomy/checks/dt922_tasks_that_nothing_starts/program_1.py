import os

import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
