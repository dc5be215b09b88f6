from functools import partial

import numpy as np
from torch.utils.data import DataLoader


def init(worker_id, num_workers, rank, seed):
    worker_seed = num_workers * rank + worker_id + seed
    np.random.seed(worker_seed)


loader = DataLoader(data, num_workers=4, worker_init_fn=partial(init, num_workers=4, rank=0, seed=1))
