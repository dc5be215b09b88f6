import torch.distributed as dist
from torch.multiprocessing import Process


def init_process(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)


if __name__ == "__main__":
    ranks = [Process(target=init_process, args=(rank, 8)) for rank in range(2)]  # dt: DT231
    for each in ranks:
        each.start()
