import torch.distributed as dist


def shown(loss, size):
    work = dist.all_reduce(loss, async_op=True)
    work.wait()
    mean = loss.item() / size  # dt: DT418
    return mean


def received(buffer, source):
    request = dist.irecv(buffer, src=source)
    request.wait()
    print(f"from {source}: {buffer}")  # dt: DT418
