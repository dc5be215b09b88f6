import os

import torch.distributed as dist


def prepare(path, config):
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, f"{dist.get_rank()}.yaml"), "w") as file:
        file.write(config)
