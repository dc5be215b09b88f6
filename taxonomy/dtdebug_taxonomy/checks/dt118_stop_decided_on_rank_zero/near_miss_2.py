"""No rank waits for another one in this loop."""

import torch.distributed as dist

found = None
for path in paths:
    if dist.get_rank() == 0:
        found = look(path)
    if found:
        break
dist.barrier()
