import torch.distributed as dist
import torch.multiprocessing as mp

SIZE = 4


def teacher(rank):
    dist.init_process_group("gloo", rank=rank, world_size=2)


def student(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)


def other(rank):
    print(rank)


if __name__ == "__main__":
    mp.spawn(teacher, nprocs=2)
    mp.spawn(student, args=(SIZE,), nprocs=4)
    mp.spawn(other, nprocs=3)
