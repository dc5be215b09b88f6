import os
import time

import torch.distributed as dist

if __name__ == "__main__":
    dist.init_process_group("nccl")
    os.makedirs(f"runs/rank{dist.get_rank()}_{time.time()}", exist_ok=True)
