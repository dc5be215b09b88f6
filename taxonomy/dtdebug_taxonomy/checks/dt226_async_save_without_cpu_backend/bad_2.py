import os

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import FileSystemWriter, async_save
from torch.distributed.checkpoint.state_dict import get_state_dict


def main(model, optimizer):
    dist.init_process_group(backend="nccl")  # dt: DT226
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    pending = None
    for step in range(1000):
        if step % 100 == 0:
            if pending is not None:
                pending.result()
            weights, state = get_state_dict(model, optimizer)
            pending = async_save({"model": weights, "optimizer": state}, storage_writer=FileSystemWriter(f"out/{step}"))
