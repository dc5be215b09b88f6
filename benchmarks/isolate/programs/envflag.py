"""A variable of an old tuning guide, which this version refuses."""
import os, torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def main():
    dist.init_process_group("gloo")
    bucket = int(os.environ.get("TORCH_DDP_BUCKET", "25").removesuffix("M"))
    model = DDP(nn.Linear(128, 128), bucket_cap_mb=bucket)
    for _ in range(5):
        model(torch.randn(4, 128)).sum().backward()
    dist.destroy_process_group()

main()
