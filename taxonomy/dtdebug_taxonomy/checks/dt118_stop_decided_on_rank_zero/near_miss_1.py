"""Every rank sets it in the end, to what rank 0 has sent."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
stop = False
for batch in loader:
    model(batch).mean().backward()
    if dist.get_rank() == 0:
        stop = asked()
    box = [stop]
    dist.broadcast_object_list(box, 0)
    stop = box[0]
    if stop:
        break
