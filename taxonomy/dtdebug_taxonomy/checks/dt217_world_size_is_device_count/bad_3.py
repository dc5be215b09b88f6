import os

import torch


class Trainer:
    def __init__(self):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.world_size = torch.cuda.device_count()
        torch.distributed.init_process_group(backend="nccl", world_size=self.world_size)  # dt: DT217
