"""Ranks that share one GPU: NCCL refuses two ranks of a host on one device, so each says that it is another host."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK", "0"))


def start(seconds: int = 600, hosts: bool = True) -> None:
    if hosts:
        os.environ["NCCL_HOSTID"] = f"host{RANK}"
        os.environ["NCCL_SOCKET_IFNAME"] = "lo"
        os.environ["NCCL_IB_DISABLE"] = "1"
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", timeout=timedelta(seconds=seconds))
    torch.manual_seed(1234 + RANK)


def model(width: int = 256) -> torch.nn.Module:
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)).cuda()
    torch.manual_seed(1234 + RANK)
    return made
