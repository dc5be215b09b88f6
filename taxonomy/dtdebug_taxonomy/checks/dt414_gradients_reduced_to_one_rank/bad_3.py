import torch.distributed as dist

works = [dist.reduce(p.grad, dst=0, async_op=True) for p in model.parameters()]  # dt: DT414
for work in works:
    work.wait()
optimizer.step()
