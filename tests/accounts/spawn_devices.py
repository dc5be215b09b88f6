import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

TENSORS = {"a": torch.ones(3), "b": torch.ones(4)}


def main(rank, world, names):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = os.environ["PORT_FOR_SPAWN"]
    dist.init_process_group("gloo", rank=rank, world_size=world)
    out = [torch.zeros(3) for _ in range(world)]
    dist.all_gather(out, TENSORS[names[rank]])


if __name__ == "__main__":
    mp.spawn(main, args=(2, ["b", "b"]), nprocs=2)
