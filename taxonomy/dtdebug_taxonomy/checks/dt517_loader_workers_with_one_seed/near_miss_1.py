"""Seeded for the whole program, not in the workers."""

import numpy as np
from torch.utils.data import DataLoader


def seed_all(seed):
    np.random.seed(seed)


seed_all(3)
loader = DataLoader(data, num_workers=4, worker_init_fn=prepare_worker)
