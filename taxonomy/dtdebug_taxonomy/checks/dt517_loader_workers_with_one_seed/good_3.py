import numpy as np
from torch.utils.data import DataLoader, get_worker_info


def init(worker_id):
    info = get_worker_info()
    np.random.seed(info.seed % 2**32)


loader = DataLoader(data, num_workers=4, worker_init_fn=init)
