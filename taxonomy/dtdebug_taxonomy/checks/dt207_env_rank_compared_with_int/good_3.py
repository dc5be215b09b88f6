import os


def is_main(rank=None):
    rank = rank if rank is not None else int(os.environ.get("RANK", 0))
    return rank == 0


def workers():
    return int(os.getenv("WORLD_SIZE") or 1) > 1 and os.environ.get("RANK") is not None
