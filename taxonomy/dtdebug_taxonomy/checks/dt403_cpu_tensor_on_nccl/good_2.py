import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="gloo")
args = parser.parse_args()
dist.init_process_group(args.backend)
dist.all_reduce(torch.ones(1))
