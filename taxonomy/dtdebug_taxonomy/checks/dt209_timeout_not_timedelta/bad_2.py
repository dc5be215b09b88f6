import datetime
import os

from torch.distributed import init_process_group, new_group

MINUTES = 60


def setup(hours=2):
    limit = 2 * 60 * MINUTES
    init_process_group(
        backend="nccl",
        init_method="env://",
        timeout=limit,  # dt: DT209
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
    )
    start = datetime.datetime.now()
    return new_group([0, 1], timeout=float(os.environ.get("LIMIT", "30"))), start  # dt: DT209
