import os

import torch.distributed as dist

dist.init_process_group("nccl", init_method="tcp://10.0.0.1:29500", rank=0, world_size=2)
os.environ["MASTER_ADDR"] = "10.0.0.1"
os.environ["NCCL_DEBUG"] = "INFO"
