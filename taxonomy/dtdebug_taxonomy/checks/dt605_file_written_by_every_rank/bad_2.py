import os
import shutil

import torch.distributed as dist


def train(args, steps):
    is_main = dist.get_rank() == 0
    shutil.rmtree(args.cache)  # dt: DT605
    for step in range(steps):
        if is_main:
            print(step)
    os.rename(args.partial, args.final)  # dt: DT605
