import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()

data = TensorDataset(torch.zeros(8))
loader = DataLoader(  # dt: DT424
    data,
    num_workers=args.workers,
    persistent_workers=True,
)
