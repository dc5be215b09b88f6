import os
import time

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(model):
    model = DDP(model)
    name = f"run_{int(time.time())}"
    path = os.path.join("runs", name)
    os.makedirs(path, exist_ok=True)  # dt: DT607


if __name__ == "__main__":
    main(torch.nn.Linear(1, 1))
