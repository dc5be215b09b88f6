import time
from pathlib import Path

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
path = "model.pt"
if dist.get_rank() == 0:
    time.sleep(1)
    torch.save({"weight": torch.ones(2)}, path)
torch.load(path)
