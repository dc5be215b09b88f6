import torch.distributed as dist


def told(rank, queue, value):
    """The others hear of it before."""
    while True:
        if rank == 0:
            text = queue.get()
            dist.broadcast_object_list([text], src=0)
            if text == "quit":
                break
        dist.all_reduce(value)


def all_ask(rank, stop, loader, loss):
    """All ranks know it, rank 0 says so."""
    for _ in loader:
        if rank == 0:
            if stop:
                print("done")
                break
        elif stop:
            break
        dist.all_reduce(loss)


def own_loop(rank, files, loss):
    """Only the inner loop ends, which no other rank is in."""
    if rank == 0:
        for file in files:
            if file.exists():
                break
    dist.all_reduce(loss)


def alone(rank, world_size, loss):
    if rank == 0:
        if world_size == 1:
            return loss
    dist.all_reduce(loss)
    return loss


def checked(rank, path, loss):
    """An error ends the rank, and the launcher ends the others."""
    if rank == 0:
        if not path.exists():
            raise FileNotFoundError(path)
    dist.all_reduce(loss)


def in_a_group(rank, group, done, loss):
    if rank == 0:
        if done:
            return
    dist.all_reduce(loss, group=group)
