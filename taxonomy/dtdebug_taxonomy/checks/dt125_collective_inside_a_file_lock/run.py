"""Two ranks wait for each other with a lock on a file that both want."""

import datetime
import fcntl
import tempfile
from pathlib import Path

import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
path = [tempfile.mkstemp()[1]] if dist.get_rank() == 0 else [""]
dist.broadcast_object_list(path, src=0)
with Path(path[0]).open("w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    dist.barrier()
    fcntl.flock(file, fcntl.LOCK_UN)
print("passed")
