import os

import torch

local_rank = int(os.environ["SLURM_LOCALID"])
torch.cuda.set_device(local_rank % torch.cuda.device_count())
