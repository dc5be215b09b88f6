import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl", rank=os.environ["SLURM_PROCID"], world_size=int(os.environ["SLURM_NTASKS"]))  # dt: DT216
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
