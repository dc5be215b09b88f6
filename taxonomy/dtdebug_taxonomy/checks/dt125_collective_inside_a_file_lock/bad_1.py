import json
import os

import torch.distributed as dist
from filelock import FileLock


def load(path):
    with FileLock(path + ".lock"):
        if not os.path.exists(path):
            build(path)
        dist.barrier()  # dt: DT125
        with open(path) as file:
            return json.load(file)
