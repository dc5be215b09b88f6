import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
val_data = [4, 5]
loader = DataLoader(val_data, sampler=DistributedSampler(val_data))
rows = [None] * dist.get_world_size()
dist.all_gather_object(rows, [float(x) for x in loader])
accuracy = sum(map(sum, rows))
if dist.get_rank() == 0:
    print(accuracy)
