"""Two ranks of one host meet at a port; another program of this host listens, too."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, port: int) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    if rank == 0:
        print(f"the sum is {total.item():g}", flush=True)
    dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    with socket.create_server(("", 0)) as other:  # stands for the other program
        port = other.getsockname()[1]
        mp.spawn(train, args=(port,), nprocs=2)
