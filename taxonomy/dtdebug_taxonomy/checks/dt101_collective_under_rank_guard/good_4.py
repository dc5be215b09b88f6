from contextlib import contextmanager

import torch.distributed as dist


@contextmanager
def main_process_first(rank):
    if rank > 0:
        dist.barrier()
    yield
    if rank == 0:
        dist.barrier()


class RankZeroFirst:
    def __init__(self, is_main):
        self.is_main = is_main

    def __enter__(self):
        if not self.is_main:
            dist.barrier()

    def __exit__(self, *_):
        if self.is_main:
            dist.barrier()


def share(rank, weights):
    if rank == 0:
        box = [weights]
        dist.broadcast_object_list(box, src=0)
    else:
        box = [None]
        dist.broadcast_object_list(box, src=0)
    return box[0]


def in_turn(rank, world_size):
    for turn in range(world_size):
        if turn == rank:
            print("rank", rank)
            dist.barrier()
