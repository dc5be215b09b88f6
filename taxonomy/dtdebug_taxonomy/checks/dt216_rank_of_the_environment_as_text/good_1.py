import os

import torch

local_rank = int(os.getenv("LOCAL_RANK", 0))
device = torch.device("cuda", local_rank)
