import os

import torch.distributed as dist

dist.init_process_group("gloo")
os.environ["MASTER_ADDR"] = "localhost"  # dt: DT208
os.environ["MASTER_PORT"] = "29500"  # dt: DT208
