import os

import torch.distributed as dist

found = [None] * int(os.environ["LOCAL_WORLD_SIZE"])  # dt: DT409
dist.all_gather_object(found, len(data))
