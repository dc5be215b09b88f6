import os
from datetime import datetime

import torch.distributed as dist

if __name__ == "__main__":
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        os.makedirs(os.path.join("runs", datetime.now().strftime("%Y%m%d")), exist_ok=True)
