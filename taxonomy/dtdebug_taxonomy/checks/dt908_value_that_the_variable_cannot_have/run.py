import os

os.environ["TORCH_DISTRIBUTED_DEBUG"] = "true"

import torch.distributed as dist

print(dist.is_available())
