import os

import torch.distributed as dist

found = [None] * dist.get_world_size()  # dt: DT409
dist.all_gather_object(found, len(data))
