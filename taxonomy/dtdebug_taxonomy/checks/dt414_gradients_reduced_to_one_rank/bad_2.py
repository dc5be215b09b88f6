import torch.distributed as dist

for param in model.parameters():
    if param.grad is not None:
        dist.reduce(param.grad.data, 0, op=dist.ReduceOp.SUM)  # dt: DT414
optimizer.step()
