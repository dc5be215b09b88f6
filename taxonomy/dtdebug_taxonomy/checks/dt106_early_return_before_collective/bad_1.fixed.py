import torch.distributed as dist


def log_metrics(loss, step):
    dist.all_reduce(loss)  # dt: DT106
    if dist.get_rank() != 0:
        return
    print(step, loss)
