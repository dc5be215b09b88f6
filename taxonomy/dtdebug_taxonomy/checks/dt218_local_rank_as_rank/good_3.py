import torch.distributed as dist
import torch.multiprocessing as mp


def run(local_rank, world_size):
    dist.init_process_group("nccl", rank=local_rank, world_size=world_size)


if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=4)
