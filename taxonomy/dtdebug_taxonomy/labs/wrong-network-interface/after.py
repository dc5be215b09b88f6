"""Two ranks add two numbers over the network interface that the cluster's manual names."""

import os

import torch
import torch.distributed as dist

os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"the sum is {total.item():g}", flush=True)
dist.destroy_process_group()
