import os

import torch.distributed as dist


def setup(rank: int, world_size: int) -> None:
    os.environ["NCCL_BLOCKING_WAIT"] = "1"  # dt: DT902
    os.environ.update({
        "NCCL_DESYNC_DEBUG": "1",  # dt: DT902
        "MASTER_PORT": "29500",
    })
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
