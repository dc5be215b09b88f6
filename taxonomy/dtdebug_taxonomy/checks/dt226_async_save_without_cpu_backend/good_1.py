import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("cpu:gloo,cuda:nccl")
dcp.async_save({"step": 1}, checkpoint_id="checkpoint/1").result()
