import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
dataset = list(range(100))
sampler = DistributedSampler(dataset)  # dt: DT502
loader = DataLoader(dataset, batch_size=4, sampler=sampler)
for epoch in range(10):
    for batch in loader:
        print(batch)
