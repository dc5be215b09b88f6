import datetime

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
if dist.get_rank() == 0:
    dcp.save({"weight": torch.ones(2)}, checkpoint_id="out")
else:
    dist.barrier()
