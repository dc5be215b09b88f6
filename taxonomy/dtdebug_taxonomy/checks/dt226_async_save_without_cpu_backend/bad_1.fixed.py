import torch.distributed as dist
import torch.distributed.checkpoint as dcp

dist.init_process_group("cpu:gloo,cuda:nccl")  # dt: DT226
state = {"step": 1}
future = dcp.async_save(state, checkpoint_id="checkpoint/1")
future.result()
dist.destroy_process_group()
