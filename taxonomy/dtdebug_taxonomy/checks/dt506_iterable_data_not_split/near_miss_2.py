import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        info = get_worker_info()
        mine = self.shards if info is None else self.shards[info.id :: info.num_workers]
        for shard in mine:
            yield from range(shard * 100, shard * 100 + 100)


dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1))
own = list(range(16))[dist.get_rank() :: dist.get_world_size()]
for batch in DataLoader(Shards(own), batch_size=8, num_workers=2):
    model(batch.float().unsqueeze(1)).sum().backward()
