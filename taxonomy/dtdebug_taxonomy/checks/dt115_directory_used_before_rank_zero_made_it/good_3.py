import os

import torch.distributed as dist


def prepare(path, config):
    if dist.get_rank() == 0:
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "config.yaml"), "w") as file:
            file.write(config)
