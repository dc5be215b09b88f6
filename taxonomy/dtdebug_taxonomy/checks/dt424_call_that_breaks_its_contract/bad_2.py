import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()
dist.init_process_group("gloo")

data = TensorDataset(torch.zeros(8))
loader = DataLoader(  # dt: DT424
    data,
    num_workers=args.workers,
    persistent_workers=True,
)
