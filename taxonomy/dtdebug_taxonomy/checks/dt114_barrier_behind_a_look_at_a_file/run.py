import os
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
path = os.path.join(tempfile.gettempdir(), f"looked_at_{os.environ['MASTER_PORT']}.pt")
dist.barrier()
if dist.get_rank() == 1:
    while not os.path.exists(path):  # it comes late
        time.sleep(0.1)
try:
    if not os.path.exists(path):
        if dist.get_rank() == 0:
            torch.save(torch.ones(1), path)
        dist.barrier()
    elif dist.get_rank() == 1:
        time.sleep(8)
except RuntimeError as error:
    print(f"timed out: {error}", flush=True)
    sys.exit(1)
finally:
    if dist.get_rank() == 0 and os.path.exists(path):
        os.remove(path)
