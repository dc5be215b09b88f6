import torch
import torch.distributed as dist


# The gradients are compared between the ranks, and no step uses what comes out.
def same_everywhere(model):
    for p in model.parameters():
        own = p.grad.clone()
        dist.all_reduce(p.grad, op=dist.ReduceOp.MAX)
        assert torch.allclose(own, p.grad)


def train(model, optimizer, group):
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.MAX, group=group)
    optimizer.step()
