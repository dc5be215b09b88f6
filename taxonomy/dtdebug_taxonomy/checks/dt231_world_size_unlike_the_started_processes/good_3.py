from multiprocessing import Process

import torch.distributed as dist


def run(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)


if __name__ == "__main__":
    size = 2
    ranks = [Process(target=run, args=(rank, size)) for rank in range(size)]
    for each in ranks:
        each.start()
