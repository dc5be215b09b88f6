import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("nccl")
dcp.save({"step": 1}, checkpoint_id="checkpoint/1")
