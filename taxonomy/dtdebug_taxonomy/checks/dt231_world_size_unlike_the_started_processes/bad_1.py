import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 4


def setup(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def train(rank):
    setup(rank, WORLD_SIZE)


if __name__ == "__main__":
    mp.spawn(train, nprocs=2)  # dt: DT231
