import random

import torch.distributed as dist
from torch.utils.data import Dataset, DistributedSampler


class Rows(Dataset):
    def __init__(self):
        self.rows = list(range(1000))
        random.shuffle(self.rows)

    def __len__(self):
        return len(self.rows)


dist.init_process_group("gloo")
data = Rows()
mine = [data.rows[i] for i in DistributedSampler(data)]
parts = [None, None]
dist.all_gather_object(parts, mine)
if dist.get_rank() == 0:
    print(f"of 1000 samples {len(set(parts[0]) | set(parts[1]))} are used", flush=True)
dist.destroy_process_group()
