import os
import subprocess

import torch
import torch.distributed as dist


def join(rank, group):
    dist.init_process_group("nccl", rank=rank, world_size=torch.cuda.device_count())


def main(args):
    if not os.path.isdir(args.logs):
        os.makedirs(args.logs)
    workers = [subprocess.Popen(["python", "train.py", f"--rank={i}"]) for i in range(torch.cuda.device_count())]
    for worker in workers:
        worker.wait()


if __name__ == "__main__":
    main(parse())
