import itertools

import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        workers, worker = (info.num_workers, info.id) if info else (1, 0)
        n, k = dist.get_world_size() * workers, dist.get_rank() * workers + worker
        with open("data.txt") as f:
            yield from itertools.islice(f, k, None, n)


dist.init_process_group("gloo")
loader = DataLoader(Lines())
