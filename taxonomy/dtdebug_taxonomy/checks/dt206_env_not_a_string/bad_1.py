import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = 29500  # dt: DT206
    os.environ["RANK"] = rank  # dt: DT206
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


if __name__ == "__main__":
    mp.spawn(run, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
