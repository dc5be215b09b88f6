import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD_SIZE = 4
GPUS = torch.cuda.device_count()


def train(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


if __name__ == "__main__":
    mp.spawn(train, args=(WORLD_SIZE,), nprocs=WORLD_SIZE)
    mp.spawn(train, args=(4,), nprocs=4)
    mp.spawn(train, args=(4,), nprocs=GPUS)
