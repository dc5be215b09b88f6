import numpy as np
import torch.distributed as dist


def main(loader, folder):
    if dist.get_rank() == 0:
        print("start")
    for codes, name in loader:
        np.save(f"{folder}/{name}.npy", codes)
