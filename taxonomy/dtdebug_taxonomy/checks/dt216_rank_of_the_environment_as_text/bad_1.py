import os

import torch

local_rank = os.getenv("LOCAL_RANK", 0)
device = torch.device("cuda", local_rank)  # dt: DT216
