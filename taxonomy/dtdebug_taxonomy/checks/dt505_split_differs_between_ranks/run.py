"""Counts the test items of one rank that the other one trains on."""

import torch
import torch.distributed as dist
from torch.utils.data import random_split

dist.init_process_group("gloo")


def leaked(generator=None):
    train, test = random_split(range(200), [150, 50], generator=generator)
    rows = [None, None]
    dist.all_gather_object(rows, (list(train.indices), list(test.indices)))
    return len(set(rows[0][1]) & set(rows[1][0]))


without = leaked()
with_generator = leaked(torch.Generator().manual_seed(0))
if dist.get_rank() == 0:
    print(
        f"tested by one rank and trained on by the other: without generator {without}, with generator {with_generator}",
        flush=True,
    )
dist.destroy_process_group()
