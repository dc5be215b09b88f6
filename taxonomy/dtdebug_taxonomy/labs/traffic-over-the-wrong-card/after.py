"""Two ranks on a host with two networks; each says over which one it exchanges."""

import os

import psutil
import torch
import torch.distributed as dist

FAST = "10.9.0.1"
"""Address of the fast card, fast0."""

os.environ["GLOO_SOCKET_IFNAME"] = "fast0"
dist.init_process_group("gloo")
gradient = torch.ones(1000)
dist.all_reduce(gradient)
mine = {connection.laddr.ip for connection in psutil.Process().net_connections("tcp")}
print(f"rank {dist.get_rank()}: exchange over {'fast0' if FAST in mine else 'the loopback'}", flush=True)
dist.barrier()
dist.destroy_process_group()
