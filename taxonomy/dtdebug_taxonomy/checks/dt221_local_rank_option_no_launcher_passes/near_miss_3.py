import argparse

import torch
import torch.distributed as dist
from mine import environment

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
here = environment(parser.parse_args())
torch.cuda.set_device(here.local_rank)
dist.barrier()
