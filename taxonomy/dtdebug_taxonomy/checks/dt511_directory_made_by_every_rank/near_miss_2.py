import os

import torch.distributed as dist

from helpers import if_main_process


def write_images(folder):
    if not os.path.exists(folder):
        os.makedirs(folder)


def main(args):
    dist.init_process_group("nccl")
    if if_main_process():
        if not os.path.isdir(args.out):
            os.makedirs(args.out)
