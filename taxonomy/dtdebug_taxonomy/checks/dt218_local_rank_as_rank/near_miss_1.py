import os

import torch
from torch.utils.data import DistributedSampler

# Each machine has the whole data on its own disk, and splits it between its own devices.
local_rank = int(os.environ["LOCAL_RANK"])
sampler = DistributedSampler(data, num_replicas=torch.cuda.device_count(), rank=local_rank)
