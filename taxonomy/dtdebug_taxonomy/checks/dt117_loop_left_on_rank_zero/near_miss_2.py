"""The loop is rank 0's own: nobody waits in it."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for batch in loader:
    model(batch).backward()
    for sample in extra:
        if dist.get_rank() == 0 and sample.bad:
            break
