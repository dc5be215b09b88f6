import torch.distributed as dist


def log_loss(loss, n, writer, step):
    loss = loss * n / dist.get_world_size()
    dist.all_reduce(loss)
    writer.add_scalar("loss", loss.item(), step)


def worst(loss):
    dist.all_reduce(loss, dist.ReduceOp.MAX)
    print(loss)
