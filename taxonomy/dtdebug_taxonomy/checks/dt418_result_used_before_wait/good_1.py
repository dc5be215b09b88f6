import torch.distributed as dist


def average_gradients(model, size):
    works = [(p, dist.all_reduce(p.grad, async_op=True)) for p in model.parameters()]
    for p, work in works:
        work.wait()
        p.grad /= size
