import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()
device = torch.device(f"cuda:{args.local_rank}")
print(torch.ones(2, device=device))
