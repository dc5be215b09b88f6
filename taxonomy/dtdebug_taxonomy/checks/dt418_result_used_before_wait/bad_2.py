import torch.distributed as dist


def average_gradients(model, size):
    handles = []
    for p in model.parameters():
        handle = dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM, async_op=True)
        p.grad.data /= size  # dt: DT418
        handles.append(handle)
    for handle in handles:
        handle.wait()
