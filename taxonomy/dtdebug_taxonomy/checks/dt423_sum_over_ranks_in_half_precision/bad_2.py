import torch
import torch.distributed as dist


def exchange(model):
    for p in model.parameters():
        small = p.grad.to(torch.float16)
        dist.all_reduce(small, op=dist.ReduceOp.SUM)  # dt: DT423
        p.grad.copy_(small)
