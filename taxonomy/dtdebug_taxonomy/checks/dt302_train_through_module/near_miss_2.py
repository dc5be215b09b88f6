"""Averages the gradients by hand, so DistributedDataParallel need not see the backward pass."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, optimizer):
    ddp = DistributedDataParallel(net)
    for batch in loader:
        loss = ddp.module(batch).sum()
        loss.backward()
        for name, parameter in ddp.named_parameters():
            grad = parameter.grad
            dist.all_reduce(grad, op=dist.ReduceOp.AVG)
        optimizer.step()
