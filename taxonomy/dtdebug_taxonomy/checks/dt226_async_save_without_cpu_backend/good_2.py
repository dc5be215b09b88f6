import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("nccl")
cpu = dist.new_group(backend="gloo")
dcp.async_save({"step": 1}, checkpoint_id="checkpoint/1", process_group=cpu).result()
