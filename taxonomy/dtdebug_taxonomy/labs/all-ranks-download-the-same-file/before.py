"""The data set is fetched when it is not there, then all ranks read it."""

import time
from pathlib import Path

import torch
import torch.distributed as dist

DATA = Path("data/mnist.pt")


def fetch() -> None:
    DATA.parent.mkdir(exist_ok=True)
    part = DATA.with_suffix(".part")
    torch.save(torch.arange(1000), part)
    time.sleep(2)  # a slow connection
    part.rename(DATA)


def build_dataset() -> torch.Tensor:
    if not DATA.exists():
        fetch()
    return torch.load(DATA)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    dist.barrier()
    read = torch.tensor(len(build_dataset()))
    dist.all_reduce(read, dist.ReduceOp.MIN)
    if dist.get_rank() == 0:
        print(f"all ranks have read {read.item()} samples", flush=True)
    dist.destroy_process_group()
