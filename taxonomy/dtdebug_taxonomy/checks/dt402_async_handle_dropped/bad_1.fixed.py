import torch
import torch.distributed as dist

dist.init_process_group("nccl")
loss = torch.ones(1, device="cuda")
dist.all_reduce(loss, op=dist.ReduceOp.SUM)  # dt: DT402
print(loss.item())
