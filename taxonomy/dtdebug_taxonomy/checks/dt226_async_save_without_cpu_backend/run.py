import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

# A backend for GPUs alone, as "nccl" is one, that starts without a GPU.
dist.init_process_group("cuda:gloo")
dcp.async_save({"weight": torch.ones(2)}, checkpoint_id="checkpoint").result()
