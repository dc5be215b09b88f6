import os
import shutil

import torch.distributed as dist


def train(args, steps):
    is_main = dist.get_rank() == 0
    if is_main:
        shutil.rmtree(args.cache)  # dt: DT605
    for step in range(steps):
        if is_main:
            print(step)
    if is_main:
        os.rename(args.partial, args.final)  # dt: DT605
