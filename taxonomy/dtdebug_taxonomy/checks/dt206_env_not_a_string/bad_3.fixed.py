import os
import torch


class Launcher:
    def __init__(self, port: int = 29501):
        self.port = port

    def prepare(self, rank: int):
        world = torch.cuda.device_count()
        os.environ.update(
            {
                "MASTER_ADDR": "localhost",
                "MASTER_PORT": str(self.port),  # dt: DT206
                "RANK": str(rank),
                "LOCAL_RANK": str(rank % world),  # dt: DT206
            }
        )
        os.environ["TORCH_NCCL_BLOCKING_WAIT"] = str(True)  # dt: DT206
