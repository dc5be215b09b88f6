import torch.distributed as dist


def log_metrics(loss, step):
    if dist.get_rank() != 0:
        return
    dist.all_reduce(loss)  # dt: DT106
    print(step, loss)
