import os

import torch

rank = int(os.environ["SLURM_PROCID"])
torch.distributed.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
with torch.cuda.device(rank):  # dt: DT202
    x = torch.zeros(1, device="cuda")
y = torch.zeros(1, device="cuda:" + str(torch.distributed.get_rank()))  # dt: DT202
