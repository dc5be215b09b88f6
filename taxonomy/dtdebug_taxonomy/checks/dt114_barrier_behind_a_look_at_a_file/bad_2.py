import json
import os

import torch.distributed as dist


def plan(path, make):
    if os.path.isfile(path):
        with open(path) as file:
            return json.load(file)
    if dist.get_rank() == 0:
        with open(path, "w") as file:
            json.dump(make(), file)
    dist.barrier()  # dt: DT114
    return plan(path, make)
