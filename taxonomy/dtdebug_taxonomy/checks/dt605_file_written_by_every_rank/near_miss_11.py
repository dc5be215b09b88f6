import os

import torch.distributed as dist
from mine import zero_first


def download(path):
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write("weights")


def write(path):
    with open(path, "w") as file:
        file.write("weights")


def main(path):
    if dist.get_rank() == 0:
        print("start")
    download(path)
    with zero_first(dist.get_rank()):
        write(path)
