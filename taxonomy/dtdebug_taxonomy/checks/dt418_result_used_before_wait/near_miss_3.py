import torch.distributed as dist


def mean(total, size, overlap):
    work = None
    if overlap:
        work = dist.all_reduce(total, async_op=True)
    if not overlap:
        dist.all_reduce(total)
        total /= size
    if work is not None:
        work.wait()
        total /= size
    return total
