import os

import torch.distributed as dist


def prepare(path, config):
    if dist.get_rank() == 0:
        os.makedirs(path, exist_ok=True)
    dist.barrier()
    with open(os.path.join(path, f"{dist.get_rank()}.yaml"), "w") as file:
        file.write(config)
