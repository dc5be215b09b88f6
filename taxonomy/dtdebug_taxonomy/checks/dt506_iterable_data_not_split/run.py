"""Lists what two ranks get from one iterable data set."""

import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset


class Numbers(IterableDataset):
    def __iter__(self):
        return iter(range(4))


dist.init_process_group("gloo")
rows = [None, None]
dist.all_gather_object(rows, [int(n) for n in DataLoader(Numbers(), batch_size=None)])
if dist.get_rank() == 0:
    print("rank 0", rows[0], "rank 1", rows[1], flush=True)
dist.destroy_process_group()
