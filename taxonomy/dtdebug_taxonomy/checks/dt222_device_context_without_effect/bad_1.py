import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.device(int(os.environ["LOCAL_RANK"]))  # dt: DT222
