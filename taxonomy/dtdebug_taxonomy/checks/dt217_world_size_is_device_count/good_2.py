import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


if __name__ == "__main__":
    count = torch.cuda.device_count()
    mp.spawn(run, args=(count,), nprocs=count)
