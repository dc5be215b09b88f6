import torch.distributed as dist

for param in model.parameters():
    if param.grad is not None:
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)  # dt: DT414
optimizer.step()
