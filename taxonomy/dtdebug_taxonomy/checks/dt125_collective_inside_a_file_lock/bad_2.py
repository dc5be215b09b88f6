import contextlib
import fcntl

import torch.distributed as dist


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def agree(value):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def prepare(folder):
    with locked(folder + "/.lock"):
        names = agree("ready")  # dt: DT125
    return names
