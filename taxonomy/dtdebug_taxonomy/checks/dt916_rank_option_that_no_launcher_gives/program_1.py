import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--world-size", type=int, default=1)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", rank=args.rank, world_size=args.world_size)
torch.cuda.set_device(args.rank)
