import argparse
import os

import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
args = parser.parse_args()
if "RANK" in os.environ:
    args.rank = int(os.environ["RANK"])
dist.init_process_group("nccl", rank=args.rank, world_size=int(os.environ["WORLD_SIZE"]))
