import random
from functools import partial

import numpy as np
from torch.utils.data import DataLoader


def init(worker_id, num_workers, seed):
    base = seed
    np.random.seed(base)  # dt: DT517
    random.seed(seed)  # dt: DT517


def build(dataset, seed):
    return DataLoader(dataset, num_workers=4, worker_init_fn=partial(init, num_workers=4, seed=seed))
