import functools

import torch.multiprocessing as mp


def counted(function):
    @functools.wraps(function)
    def call(rank):
        function(rank, 2)

    return call


@counted
def main(rank, world_size):
    print(rank, world_size)


def start(function, args):
    mp.spawn(main, nprocs=2)
    mp.spawn(function, args=args, nprocs=2)
    mp.spawn(function, args=(1, 2, 3), nprocs=2)


if __name__ == "__main__":
    start(main, ())
