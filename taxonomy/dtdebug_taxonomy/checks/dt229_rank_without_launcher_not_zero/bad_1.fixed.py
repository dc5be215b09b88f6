import os

import torch

local_rank = int(os.environ.get("LOCAL_RANK", 0))  # dt: DT229
torch.cuda.set_device(local_rank)
