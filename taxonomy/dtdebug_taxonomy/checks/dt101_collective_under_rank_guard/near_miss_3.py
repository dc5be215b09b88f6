from functools import cache

import torch.distributed as dist


@cache
def score(place):
    dist.barrier()
    return place * 2


def search(places):
    best = min(places, key=score)
    if dist.get_rank() == 0:
        print(best, score(best))
