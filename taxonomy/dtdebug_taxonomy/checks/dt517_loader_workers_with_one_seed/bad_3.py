import torch
from torch.utils.data import DataLoader

SEED = 7


def seed_worker(worker):
    torch.manual_seed(SEED)  # dt: DT517


loader = DataLoader(data, num_workers=2, worker_init_fn=seed_worker)
