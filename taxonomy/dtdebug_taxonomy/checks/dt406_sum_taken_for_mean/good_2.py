import torch.distributed as dist


def report(loss, log):
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    log.info(loss.item())
    dist.all_reduce(loss)
    return loss
