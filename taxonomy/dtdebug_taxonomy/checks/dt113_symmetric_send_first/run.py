import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
peer = 1 - dist.get_rank()
dist.send(torch.ones(4), dst=peer)
dist.recv(torch.empty(4), src=peer)
print("passed")
