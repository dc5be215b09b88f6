import os

import torch
import torch.multiprocessing as mp

os.environ["MASTER_ADDR"] = "localhost"
world_size = torch.cuda.device_count()
if __name__ == "__main__":
    mp.spawn(print, nprocs=world_size)
