from multiprocessing import Process

import torch.multiprocessing as mp
from accelerate import notebook_launcher


def main(rank, world_size, epochs=3, *more):
    print(rank, world_size, epochs, more)


def loop():
    print("started")


if __name__ == "__main__":
    mp.spawn(main, args=(2,), nprocs=2)
    mp.spawn(main, (2, 5, 6, 7), 2)
    notebook_launcher(loop, num_processes=2)
    Process(target=main, args=[0, 2]).start()
