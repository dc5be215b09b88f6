import argparse
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, required=True)  # dt: DT221
options = parser.parse_args()
os.makedirs("out", exist_ok=True)
torch.cuda.set_device(options.local_rank)
