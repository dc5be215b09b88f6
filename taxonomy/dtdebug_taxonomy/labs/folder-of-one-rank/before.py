"""Each rank writes its log into the folder of the run."""

import time
from pathlib import Path

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
folder = Path("outputs/run1")
if rank == 0:
    time.sleep(2)  # reads the configuration
    folder.mkdir(parents=True)
(folder / f"rank{rank}.log").write_text("started\n")
dist.barrier()
if rank == 0:
    print("all ranks have logged", flush=True)
dist.destroy_process_group()
