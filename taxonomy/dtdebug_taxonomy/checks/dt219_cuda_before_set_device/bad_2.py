import os

import torch

torch.empty(1, device="cuda")  # dt: DT219
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
