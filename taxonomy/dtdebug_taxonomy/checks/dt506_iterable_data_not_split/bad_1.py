import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):  # dt: DT506
        with open(self.path) as f:
            yield from f


dist.init_process_group("gloo")
for line in DataLoader(Lines("data.txt"), batch_size=8, num_workers=2):
    print(line)


class Numbers(IterableDataset):
    def __iter__(self):  # dt: DT506
        info = get_worker_info()
        yield from range(info.id, 100, info.num_workers)
