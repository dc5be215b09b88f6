import numpy as np
import torch
from torch.utils.data import DataLoader


def worker_init_fn(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


loader = DataLoader(dataset, num_workers=8, worker_init_fn=worker_init_fn)
