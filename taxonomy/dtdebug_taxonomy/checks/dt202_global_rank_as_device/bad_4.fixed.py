import os

import torch

rank = int(os.environ["SLURM_PROCID"])
torch.distributed.init_process_group("nccl", rank=rank, world_size=int(os.environ["SLURM_NTASKS"]))
with torch.cuda.device(int(os.environ["SLURM_LOCALID"])):  # dt: DT202
    x = torch.zeros(1, device="cuda")
y = torch.zeros(1, device="cuda:" + str(int(os.environ["LOCAL_RANK"])))  # dt: DT202
