import torch.distributed as dist


def all_at_once(tensors, outputs):
    with dist._coalescing_manager(async_ops=True) as cm:
        for o, t in zip(outputs, tensors):
            dist.all_gather_into_tensor(o, t, async_op=True)
    cm.wait()
    handles = []
    for t in tensors:
        handles.append(dist.all_reduce(t, async_op=True))
    while handles:
        handles.pop().wait()
