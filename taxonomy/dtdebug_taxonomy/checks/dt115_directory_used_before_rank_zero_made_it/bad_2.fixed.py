import numpy as np
import torch.distributed as dist
from pathlib import Path


def write(folder: Path, features):
    rank = dist.get_rank()
    if rank == 0:
        folder.mkdir(parents=True, exist_ok=True)  # dt: DT115
    dist.barrier()
    np.save(folder / f"{rank}.npy", features)
