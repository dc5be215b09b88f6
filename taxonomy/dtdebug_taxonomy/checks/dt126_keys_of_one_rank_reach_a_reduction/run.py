"""Two ranks of which one has one key more."""

import datetime

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
scores = {"loss": torch.ones(1)}
if dist.get_rank() == 0:
    scores["seconds"] = torch.ones(1)
print("has", sorted(scores), flush=True)
for value in scores.values():
    dist.all_reduce(value)
if dist.get_rank() == 1:
    import time

    time.sleep(60)
