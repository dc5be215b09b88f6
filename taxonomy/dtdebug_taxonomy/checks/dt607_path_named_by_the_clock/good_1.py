import os
from datetime import datetime

import torch.distributed as dist

if __name__ == "__main__":
    dist.init_process_group("nccl")
    name = [datetime.now().strftime("%Y%m%d_%H%M%S")]
    dist.broadcast_object_list(name)
    os.makedirs(os.path.join("runs", name[0]), exist_ok=True)
