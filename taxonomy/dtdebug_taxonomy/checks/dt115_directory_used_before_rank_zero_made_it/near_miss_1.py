import os

import torch.distributed as dist


def prepare(path, other, config):
    if dist.get_rank() == 0:
        os.makedirs(path, exist_ok=True)
    with open(os.path.join(other, "config.yaml"), "w") as file:
        file.write(config)
