import numpy as np
from torch.utils.data import DataLoader


def worker_init_fn(worker_id):
    np.random.seed(42)  # dt: DT517


loader = DataLoader(dataset, num_workers=8, worker_init_fn=worker_init_fn)
