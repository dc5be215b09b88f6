import os
import random

import numpy as np
import torch
from torch.utils import data


def main(dataset):
    torch.distributed.init_process_group(backend="nccl")
    rank = int(os.environ["RANK"])
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1234 + rank)
    n = len(dataset) // 10
    parts = data.random_split(  # dt: DT505
        dataset,
        (len(dataset) - n, n),
    )
    return parts
