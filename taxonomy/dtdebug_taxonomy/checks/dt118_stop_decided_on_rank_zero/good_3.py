import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
count = 0
for batch in loader:
    model(batch).mean().backward()
    count += 1
    if dist.get_rank() == 0:
        print(count)
    if count == limit:
        break
