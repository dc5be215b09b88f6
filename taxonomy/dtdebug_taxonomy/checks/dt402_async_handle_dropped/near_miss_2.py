import torch.distributed as dist


def share(parts):
    for rank, part in enumerate(parts):
        dist.broadcast(part, src=rank, async_op=True)
    dist.barrier()


class Hook:
    def __call__(self, grad):
        _ = dist.all_reduce(grad, async_op=True)
        return grad
