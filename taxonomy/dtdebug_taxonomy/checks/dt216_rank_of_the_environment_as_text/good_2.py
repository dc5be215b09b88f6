import os

import torch

local_rank = os.environ["LOCAL_RANK"]
device = torch.device(f"cuda:{local_rank}")
