import os
from datetime import datetime

import torch.distributed as dist

if __name__ == "__main__":
    dist.init_process_group("nccl")
    folder = os.path.join("runs", datetime.now().strftime("%Y%m%d_%H%M%S"))
    os.makedirs(folder, exist_ok=True)  # dt: DT607
