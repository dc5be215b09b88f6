import horovod.torch as hvd
import torch.distributed as dist


def sync(model, flag):
    [dist.broadcast(b, 0, async_op=True) for b in model.buffers()]  # dt: DT402
    req = dist.all_gather_into_tensor(flag.new_empty(8), flag, None, True)  # dt: DT402
    for p in model.parameters():
        hvd.synchronize(hvd.allreduce_async_(p.grad))  # dt: DT402
    return model
