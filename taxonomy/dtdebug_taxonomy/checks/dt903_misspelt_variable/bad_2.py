import os

import torch
import torch.distributed as dist

os.environ["MASTER_ADDRESS"] = "10.0.0.1"  # dt: DT903
os.environ["MASTER_PROT"] = "29500"  # dt: DT903


def main():
    local_rank = int(os.environ.get("LOCAL_RNAK", 0))  # dt: DT903
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", rank=int(os.getenv("RANK")), world_size=int(os.getenv("WORLDSIZE")))  # dt: DT903


main()
